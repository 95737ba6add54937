"""The same on this machine: every run in a process of its own, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.paper import networks
from benchmarks.paper.observed import observed
from benchmarks.paper.runs import HARDLY_DRAWN, LIVE, Run, all_runs, as_toml, variant
from heimdall.analyzer.profiler import Progress
from heimdall.bench.runner import FailedSystemError, OwnProcess, machine
from heimdall.bench.scenario import load_scenario
from heimdall.bench.systems import parse_system
from heimdall.system.paths import replace_file

Save = Callable[[dict[str, Any]], None]


def live(traces: Path, seconds: float, save: Save, progress: Progress) -> dict[str, Any]:
    """Results by the paths of values.toml; ``save`` gets what is there after each run.

    A run that fails is missing, and its reason is in ``failures``.
    """
    todo = [run for run in all_runs() if run.live]
    results: dict[str, Any] = {
        "machine": machine(),
        "seconds": seconds,
        "device": None,
        "networks": {},
        "runs": {},
        "failures": {},
    }
    for index, run in enumerate(todo):
        progress("running live", index, len(todo))
        trace = traces / f"{run.name}.json"
        trace.unlink(missing_ok=True)  # of an earlier time
        try:
            summary = _run(run, trace, seconds)
        except FailedSystemError as error:
            results["failures"][run.name] = str(error)
            continue
        results["device"] = summary["device"]
        results["runs"][run.name] = observed(summary, trace)
        save(results)
    progress("running live", len(todo), len(todo))
    for index, name in enumerate(networks.SCENARIOS):
        progress("measuring networks", index, len(networks.SCENARIOS))
        try:
            results["networks"] = {**networks.measured(name), **results["networks"]}
        except FailedSystemError as error:
            results["failures"][f"networks of {name}"] = str(error)
        save(results)
    progress("measuring networks", len(networks.SCENARIOS), len(networks.SCENARIOS))
    return results


def _run(run: Run, trace: Path, seconds: float) -> dict[str, Any]:
    scenario = variant(run, load_scenario(LIVE.get(run.scenario, run.scenario)))
    if not run.drawn:
        scenario = scenario.model_copy(update=HARDLY_DRAWN)
    path = trace.with_suffix(".toml")
    replace_file(path, as_toml(scenario).encode())
    own = OwnProcess(str(path), {"seconds": seconds * run.longer}, lambda system: trace)
    return own(parse_system(run.system))
