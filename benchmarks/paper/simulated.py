"""What the simulator says: every run on the phones of the paper, over seeds."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper import networks
from benchmarks.paper.derived import derived
from benchmarks.paper.kept import Kept, Task, fingerprint
from benchmarks.paper.observed import excerpt, in_trace, observed
from benchmarks.paper.runs import LG, PIXEL, Run, as_toml, scenario_of
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.bench.timeline import read_timeline
from heimdall.lab.simulator.device import load_device
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.simulate import open_machine, simulated_run, summary
from heimdall.lab.simulator.variations import vary
from heimdall.runtime.telemetry.statistics import over_runs
from heimdall.runtime.telemetry.trace import Tracer

Changes = Mapping[str, float | str]
OF_PROFILE = ("op_spread", "scatter")  # how a profile fills the gaps of the paper's tables


@dataclass(frozen=True)
class Point:
    """One simulated run. ``changes``: names of ``lab.simulator.variations``, or of a profile's
    own (``OF_PROFILE``), and values; ``traced``: what only a trace tells is wanted, too, and an
    excerpt of it for a picture."""

    scenario: Scenario
    system: str
    seed: int
    seconds: float
    device: str = LG
    drawn: bool = True
    changes: Changes = field(default_factory=dict)
    traced: bool = False

    @cached_property
    def task(self) -> Task:
        about = {
            "scenario": _as_toml(self.scenario),
            **{name: getattr(self, name) for name in ("system", "seed", "seconds", "device")},
            **{name: getattr(self, name) for name in ("drawn", "changes", "traced")},
        }
        return Task(simulate_point, (self,), about)


_TEXTS: dict[int, tuple[Scenario, str]] = {}  # by identity: thousands of points share a scenario


def _as_toml(scenario: Scenario) -> str:
    known = _TEXTS.get(id(scenario))
    if known is None or known[0] is not scenario:
        known = _TEXTS[id(scenario)] = (scenario, as_toml(scenario))
    return known[1]


def source() -> str:
    """The fingerprint of all that a simulation is made of."""
    own = "benchmarks/paper/observed.py"
    return fingerprint("heimdall/**/*.py", "heimdall/lab/**/*.toml", "apps/*.py", own)


def simulate_point(point: Point) -> dict[str, Any]:
    """What the run showed (see ``observed``), and standard deviations of its latencies."""
    machine, dnns = _open(point)
    system = parse_system(point.system)
    tracer = Tracer(0) if point.traced and system.coordinated else None
    fps = point.scenario.fps
    run = simulated_run(dnns, machine, system, fps=fps, seed=point.seed, tracer=tracer)
    run.run(point.seconds)
    found = observed(summary(run, point.scenario, system))
    for name, figures in run.figures.dnns.items():
        if figures.latencies_ns:
            found["dnns"][name]["latency_std_ms"] = float(np.std(figures.latencies_ns)) / 1e6
    if tracer is None:
        return found
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        tracer.save(trace, run.config(), {"app": point.scenario.name})
        timeline = read_timeline(trace)
    return {**found, **in_trace(timeline), "excerpt": excerpt(timeline)}


def _open(point: Point) -> tuple[Machine, list[SimulatedDnn]]:
    render_ms = None if point.drawn else 0.0
    of_profile = {name: value for name, value in point.changes.items() if name in OF_PROFILE}
    varied = {name: value for name, value in point.changes.items() if name not in OF_PROFILE}
    if of_profile:
        device = load_device(point.device).model_copy(update=of_profile)
        machine, dnns = device.open(point.scenario, render_ms)
    else:
        machine, dnns = open_machine(point.scenario, point.device, render_ms)
    return vary(machine, dnns, varied) if varied else (machine, dnns)


def point(run: Run, seed: int, seconds: float, changes: Changes | None = None) -> Point:
    """A run of the paper's, with nothing or something changed."""
    return Point(
        scenario_of(run),
        run.system,
        seed,
        seconds,
        run.device,
        run.drawn,
        changes or {},
        traced=run.traced and not changes,
    )


def points(runs: Sequence[Run], seeds: int, seconds: float) -> list[Point]:
    """Seed by seed, so that an interrupted page has all runs."""
    return [point(run, seed, seconds) for seed in range(seeds) for run in runs]


def collected(runs: Sequence[Run], kept: Kept, seeds: int, seconds: float) -> dict[str, Any] | None:
    """Results by the paths of values.toml. Below ``runs`` and ``derived``, numbers are what
    ``over_runs`` makes of the seeds; ``excerpts`` are of the first. None before anything ran."""
    phone = load_device(LG)
    fixed: dict[str, Any] = {
        "device": phone.title,
        "seconds": seconds,
        "seeds": seeds,
        "render_ms": phone.gpu.render_ms,
        "networks": networks.of_phone(phone),
        "networks_of_pixel": networks.of_phone(load_device(PIXEL)),
    }
    each: list[dict[str, Any]] = []
    for seed in range(seeds):
        found = {
            run.name: result
            for run in runs
            if (result := kept.get(point(run, seed, seconds).task, any_source=True))
        }
        if found:
            each.append(with_derived({**fixed, "runs": found}))
    if not each:
        return None
    excerpts = {name: run["excerpt"] for name, run in each[0]["runs"].items() if "excerpt" in run}
    return fixed | over_seeds(each) | {"excerpts": excerpts, "each": each}


def with_derived(results: dict[str, Any]) -> dict[str, Any]:
    """Results of one seed, and the numbers that follow from several of its runs."""
    return {**results, "derived": derived(results)}


def over_seeds(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What repetitions say together."""
    return over_runs([{"runs": one["runs"], "derived": one["derived"]} for one in each])
