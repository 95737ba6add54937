"""Several systems on one scenario, live: each in a process of its own, one after the other.

A fresh process for each, because threads, cores and scheduling policies of the software GPU
belong to a process, and what one system leaves behind must not slow the next.
"""

from __future__ import annotations

import json
import logging
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import RunOptions, check_number, check_writable
from heimdall.bench.apart import Hearing, run_apart
from heimdall.bench.live import run_live
from heimdall.bench.scenario import load_scenario
from heimdall.bench.statistics import over_runs
from heimdall.bench.systems import System, parse_systems, refuse_planned
from heimdall.errors import ArgumentError, HeimdallError
from heimdall.runtime.setup import confinement
from heimdall.system.cpu import cpu_name

log = logging.getLogger(__name__)

SCHEMA = 1
MOST_RUNS = 1000
_BENCH = (sys.executable, "-m", "heimdall", "bench")

Summary = dict[str, Any]


class FailedSystemError(HeimdallError):
    """One system could not run; it has said why on standard error."""


def compare(
    scenario: str,
    systems: str,
    *,
    seconds: float,
    size: tuple[int, int] | None = None,
    runs: int = 1,
    fallback: bool = True,
    device: str | None = None,
    gpu_cores: int | None = None,
    realtime: bool | None = None,
    gpu_policy: str | None = None,
    trace: Path | None = None,
    report: Path | None = None,
    command: str = "",
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """What ``heimdall bench --json`` prints. A single run of one system is made in this process.

    ``runs``: of each system, in turns, so that a bad minute of the machine is nobody's alone;
    ``systems`` has the first of each, ``runs`` all, ``over_runs`` what they say together.
    ``fallback`` False: no op is forced to the CPU. ``trace`` is written of a single system
    only; ``report`` is a page that also says ``command``. Both are of first runs.
    Raises ConfigError before anything runs when a name or value is wrong.
    """
    chosen = parse_systems(systems)
    for each in chosen:
        refuse_planned(each)
    check_number("runs", runs, least=1, most=MOST_RUNS)
    if trace is not None and len(chosen) > 1:
        problem = f"records one system, not {len(chosen)}: name one, or ask for a report"
        raise ArgumentError(problem, argument="trace", value=trace)
    check_writable("report", report, (".html",))
    workload = load_scenario(scenario)
    workload.app_class()
    if size is not None:
        workload = workload.model_copy(update={"size": size})
    if not fallback:
        workload = workload.without_fallback()
    limits: dict[str, Any] = {"seconds": seconds, "size": size, "device": device}
    limits |= {"gpu_cores": gpu_cores, "realtime": realtime, "gpu_policy": gpu_policy}
    options = RunOptions(headless=True, **limits)
    confinement(options, process=True)
    with tempfile.TemporaryDirectory() as folder:

        def traced(system: System) -> Path | None:
            return trace or (Path(folder) / f"{system.name}.json" if report else None)

        def here(system: System) -> Summary:
            policy: dict[str, Any] = {"mode": system.mode, "offload": system.offload}
            policy |= {"scheduler": system.scheduler, "admission": system.admission}
            own = replace(options, **policy, trace=traced(system))
            return run_live(workload, system, own, progress)

        begun: set[str] = set()

        def traced_once(system: System) -> Path | None:
            again = system.name in begun
            begun.add(system.name)
            return None if again else traced(system)

        apart = OwnProcess(scenario, {**limits, "fallback": fallback}, traced_once)
        alone = len(chosen) == runs == 1
        tell = no_progress if alone else progress
        found, failures, interrupted = run_all(chosen, here if alone else apart, tell, runs)
        summaries = {name: each[0] for name, each in found.items()}
        result = {
            "schema": SCHEMA,
            "scenario": workload.name,
            "title": workload.title,
            "machine": machine(),
            "systems": summaries,
            "runs": found,
            "over_runs": {name: over_runs(each) for name, each in found.items()},
            "failures": failures,
            "interrupted": interrupted,
        }
        if report is not None:
            paths = {each.name: traced(each) for each in chosen if each.name in summaries}
            _write(report, result, paths, command)
    return result


def _write(
    report: Path, result: Mapping[str, Any], traces: Mapping[str, Path | None], command: str
) -> None:
    from heimdall.bench.report import write_report  # here: matplotlib takes half a second
    from heimdall.bench.timeline import read_timeline

    timelines = {name: read_timeline(path) for name, path in traces.items() if path is not None}
    write_report(report, result, timelines, command)


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options of ``heimdall bench`` as a command line has them; None is left out."""
    arguments = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            arguments.append(flag if value else flag.replace("--", "--no-"))
        elif isinstance(value, tuple):
            arguments += [flag, "x".join(str(side) for side in value)]
        elif value is not None:
            arguments += [flag, str(value)]
    return arguments


def run_all(
    systems: Sequence[System],
    run: Callable[[System], Summary],
    progress: Progress,
    runs: int = 1,
) -> tuple[dict[str, list[Summary]], list[str], bool]:
    """(summaries by system, why some are missing, whether the user interrupted).

    ``run`` makes one summary; every system has its first turn, then its second. A system that
    fails does not keep the others from running; one that has never run is not tried again. An
    interruption keeps what has finished.
    """
    found: dict[str, list[Summary]] = {}
    failures: list[str] = []
    left = list(systems)
    try:
        for turn in range(runs):
            for system in list(left):
                what = system.name if runs == 1 else f"{system.name}, run {turn + 1} of {runs}"
                progress(what, 0, 1)
                try:
                    summary = run(system)
                    found.setdefault(system.name, []).append(summary)
                except HeimdallError as error:
                    log.error("%s: %s", system.name, error)
                    failures.append(f"{system.name}: {error}")
                    if system.name not in found:
                        left.remove(system)
                progress(what, 1, 1)
    except KeyboardInterrupt:
        made = sum(map(len, found.values()))
        log.warning("interrupted: keeping %d of %d runs", made, runs * len(systems))
        return found, failures, True
    return found, failures, False


class OwnProcess:
    """Runs ``heimdall bench SCENARIO --systems NAME --json`` in a new process each time.

    Its warnings are passed on while it runs, each once however many systems give it.
    """

    def __init__(
        self,
        scenario: str,
        options: Mapping[str, Any],
        traced: Callable[[System], Path | None],
    ) -> None:
        """``traced`` says where a system's trace goes, if anywhere."""
        self._scenario, self._options, self._traced = scenario, options, traced
        self._heard: set[str] = set()

    def __call__(self, system: System) -> Summary:
        """The system's summary. Raises FailedSystemError when it ends without one."""
        own = {**self._options, "systems": system.name, "trace": self._traced(system)}
        hearing = Hearing(self._heard)
        output, status = run_apart([*_BENCH, self._scenario, "--json", *as_arguments(own)], hearing)
        try:
            result = json.loads(output)
        except ValueError:  # it has died
            result = {"systems": {}, "failures": []}
        if system.name in result["systems"]:
            summary: Summary = result["systems"][system.name]
            return summary
        ended = [f"ended with status {status} and no summary", *hearing.said]
        reasons = [reason.removeprefix(f"{system.name}: ") for reason in result["failures"]]
        raise FailedSystemError(next(iter(reasons), ": ".join(ended)))


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "platform": platform.platform(),
        "processor": cpu_name(),
        "cores": psutil.cpu_count(),
        "memory_mb": round(psutil.virtual_memory().total / 1e6),
        "python": platform.python_version(),
    }
