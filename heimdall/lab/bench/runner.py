"""Several systems on one scenario, live and in turns: what ``heimdall bench`` returns.

Of a scenario that draws, each runs in a process of its own, because threads, cores and scheduling
policies of the software GPU belong to a process, and what one system leaves behind must not slow
the next.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import check_number
from heimdall.errors import HeimdallError
from heimdall.lab.bench.live import app_runs
from heimdall.lab.bench.live_requests import request_runs
from heimdall.lab.bench.model_threads import refuse_batches
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import System, parse_systems, refuse_planned
from heimdall.runtime.telemetry.statistics import over_runs
from heimdall.system.cpu import cpu_name

log = logging.getLogger(__name__)

SCHEMA = 1
MOST_RUNS = 1000

Summary = dict[str, Any]


def compare(
    scenario: str,
    systems: str,
    *,
    runs: int = 1,
    traces: Mapping[str, Path] | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> dict[str, Any]:
    """What ``heimdall bench --json`` prints. ``options``: see ``app_runs`` of a scenario that
    draws, with requests beside or not, and ``request_runs`` of others.

    ``runs``: of each system, in turns, so that a bad minute of the machine hits no system alone;
    ``systems`` has the first of each, ``runs`` all, ``over_runs`` what they say together.
    ``traces``: by system, a file for the timeline of its first run, where frames are drawn. Raises
    ConfigError before anything runs when a name or value is wrong, and for a system that has no
    queue where there are requests.
    """
    chosen = parse_systems(systems)
    workload = load_scenario(scenario).drawing(options.get("fps"), options.get("size"))
    for system in chosen:
        if workload.models:
            refuse_batches(system)
        refuse_planned(system)
    check_number("runs", runs, least=1, most=MOST_RUNS)
    begin = app_runs if workload.draws else request_runs
    how: dict[str, Any] = {"runs": runs, "traces": traces or {}, "progress": progress}
    with begin(scenario, workload, chosen, **how, **options) as live:
        found, failures, interrupted = run_all(chosen, live.run, live.tell, runs)
        summaries = {name: each[0] for name, each in found.items()}
        first = next(iter(found.values()), [])
        return {
            "schema": SCHEMA,
            "scenario": workload.name,
            "title": workload.title,
            "machine": machine(),
            "device": first[0]["device"] if first else None,
            "seeds": [run["seed"] for run in first if "seed" in run],
            "systems": summaries,
            "runs": found,
            "over_runs": {name: over_runs(each) for name, each in found.items()},
            "failures": failures,
            "interrupted": interrupted,
        }


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


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "platform": platform.platform(),
        "processor": cpu_name(),
        "cores": psutil.cpu_count(),
        "memory_mb": round(psutil.virtual_memory().total / 1e6),
        "python": platform.python_version(),
    }
