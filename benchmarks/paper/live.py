"""The same on this machine: every run in a process of its own, one after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.paper import networks
from benchmarks.paper.kept import Kept, Task, fingerprint
from benchmarks.paper.observed import excerpt, in_trace, observed
from benchmarks.paper.runs import HARDLY_DRAWN, Run, as_toml, scenario_of
from benchmarks.paper.simulated import over_seeds, with_derived
from heimdall.lab.bench.apart import OwnProcess
from heimdall.lab.bench.runner import machine
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.bench.timeline import read_timeline
from heimdall.system.paths import replace_file


def source() -> str:
    """The fingerprint of all that a live run is made of."""
    return fingerprint("heimdall/**/*.py", "heimdall/**/*.cl", "apps/*.py")


def run_live(scenario: Scenario, system: str, seconds: float) -> dict[str, Any]:
    """One run. Raises FailedSystemError when it ends without a summary."""
    with tempfile.TemporaryDirectory() as folder:
        path, trace = Path(folder) / f"{scenario.name}.toml", Path(folder) / "trace.json"
        replace_file(path, as_toml(scenario).encode())
        own = OwnProcess(str(path), {"seconds": seconds}, lambda system: trace)
        summary = own(parse_system(system))
        found = {**observed(summary), "device": summary["device"], "loads": summary["loads"]}
        if not trace.exists():
            return found
        timeline = read_timeline(trace)
    traced = in_trace(timeline)
    return {**found, **traced} | ({"excerpt": excerpt(timeline)} if traced else {})


def task(run: Run, turn: int, seconds: float) -> Task:
    """The ``turn``-th time of a run."""
    scenario = scenario_of(run, live=True)
    if not run.drawn:
        scenario = scenario.model_copy(update=HARDLY_DRAWN)
    seconds *= run.longer
    about = {"scenario": as_toml(scenario), "system": run.system, "seconds": seconds}
    return Task(run_live, (scenario, run.system, seconds), {**about, "turn": turn, **_here()})


def tasks(runs: Sequence[Run], turns: int, seconds: float) -> list[Task]:
    """Systems take turns, so that a noisy minute hits all alike; those of section 9.2 come first,
    and an interruption leaves fewer turns, not fewer systems."""
    live = sorted((run for run in runs if run.live), key=lambda run: -run.longer)
    parts = ([run for run in live if run.longer > 1], [run for run in live if run.longer == 1])
    return [task(run, turn, seconds) for part in parts for turn in range(turns) for run in part]


def network_tasks() -> list[Task]:
    """Networks by themselves."""
    return [
        Task(networks.measured, (name,), {"networks": name, **_here()})
        for name in networks.SCENARIOS
    ]


@cache
def _here() -> dict[str, Any]:
    """What results of one machine have in common."""
    found = machine()
    return {key: found[key] for key in ("processor", "cores")}


def collected(runs: Sequence[Run], kept: Kept, turns: int, seconds: float) -> dict[str, Any] | None:
    """Results as ``simulated.collected`` has them, and what they were taken on; None where there
    is none."""
    found: dict[str, Any] = {"networks": {}}
    for each in network_tasks():
        found["networks"] = {**(kept.get(each, any_source=True) or {}), **found["networks"]}
    failures = {}
    by_turn = []
    for turn in range(turns):
        results = {}
        for run in (run for run in runs if run.live):
            one = task(run, turn, seconds)
            if result := kept.get(one, any_source=True):
                results[run.name] = result
            elif why := kept.failure(one):
                failures[run.name] = why
        if results:
            by_turn.append(with_derived({**found, "runs": results}))
    if not by_turn and not found["networks"]:
        return None
    first = by_turn[0]["runs"] if by_turn else {}
    device = next((run["device"] for run in first.values()), None)
    excerpts = {name: run["excerpt"] for name, run in first.items() if "excerpt" in run}
    loads = {name: each for run in first.values() for name, each in run["loads"].items()}
    about = {
        "loads": loads,
        "machine": machine(),
        "device": device,
        "seconds": seconds,
        "failures": failures,
    }
    return {**found, **about, "turns": turns, **over_seeds(by_turn), "excerpts": excerpts}
