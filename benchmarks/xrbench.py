"""XRBench (Kwon et al., MLSys '23) under every system: ``python -m benchmarks.xrbench [--write]``.

Simulates its scenarios on a phone, alone and beside a renderer. Its networks ask for several times
what a phone can do, so streams are slowed down until they ask for a share of the GPU's time, their
load: the headline is the largest at which the score stays above 0.9 of its best. ``--write`` renews
docs/laboratory/xrbench.md, whose words are in benchmarks/xrbench.md, and whose live figures are
those that ``python -m benchmarks.xrbench_live`` has kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import xrbench_live
from benchmarks.simulated import Kept, cell, filled, table
from benchmarks.xrbench_live import SCENARIOS, SYSTEMS
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.simulator.device import load_device
from heimdall.lab.simulator.seeds import run_seeds
from heimdall.lab.simulator.serving import RequestExperiment
from heimdall.lab.simulator.simulate import Experiment, prepare_any
from heimdall.lab.standins.xrbench import NETWORKS
from heimdall.runtime.telemetry.statistics import interval
from heimdall.system import paths

PAGE = paths.ROOT / "docs" / "laboratory" / "xrbench.md"
TEXT = paths.ROOT / "benchmarks" / "xrbench.md"
LOADS = (0.3, 0.5, 0.6, 0.7, 0.8, 1.0, 1.3)
TABLE_LOAD = 0.7  # what the table with intervals is at
FRAMES = {"fps": 60.0, "size": (1920, 1080)}
ENOUGH = 0.9  # of its best
EXTENT_S = 2.0  # as many frames as come in so long at the scenario's own rates
KEPT = Path("out") / "xrbench.jsonl"
DEVICE, SEEDS = "lg-v50", 16

Run = Mapping[str, float]


class Runs:
    """Figures of simulated runs by scenario, system, load, and whether there is a renderer."""

    def __init__(self, device: str, seeds: int, kept: Kept) -> None:
        self.device, self.seeds, self._kept = device, seeds, kept
        self.few = max(2, seeds // 8)  # for curves, whose points have neighbours

    def at(self, scenario: str, system: str, load: float, draws: bool, seeds: int) -> Sequence[Run]:
        """One for each seed."""

        def simulate() -> Sequence[Run]:
            experiment = slowed(scenario, self.device, system, load, draws)
            return [figures(run) for run in run_seeds(experiment, range(seeds), 1)]

        name = f"{self.device} {scenario} {system} {load:g} {draws} {seeds}"
        return self._kept.runs(name, simulate)

    def curve(self, scenario: str, system: str, draws: bool) -> list[float]:
        """Mean scores, load by load."""
        return [
            fmean(run["score"] for run in self.at(scenario, system, load, draws, self.few))
            for load in LOADS
        ]


def figures(summary: Mapping[str, Any]) -> Run:
    """What the page says of a run: its score, and of its frames, if it has some, how many a second
    and how late."""
    found = {"score": float(summary["score"]["overall"])}
    if "fps" not in summary:
        return found
    interval_ms = summary["frame_interval_ms"]["p99"]
    return {
        **found,
        "fps": summary["fps"]["mean"],
        "p99": interval_ms,
        "late": summary["late_rate"],
    }


def slowed(
    scenario: str, device: str, system: str, load: float, draws: bool
) -> Experiment | RequestExperiment:
    """A scenario at a load. Raises ConfigError where it cannot be simulated."""
    rate = load / asked_for(scenario, device)
    options: dict[str, Any] = dict(FRAMES) if draws else {}
    return prepare_any(
        scenario, device, system, seconds=EXTENT_S / rate, variations={"rate": rate}, **options
    )


@cache
def asked_for(scenario: str, device: str) -> float:
    """The load of a scenario as it is: the share of the GPU's time that it asks for."""
    experiment = prepare_any(scenario, device, "max-total")
    lone_s = {name: ns / 1e9 for name, ns in experiment.lone_ns.items()}
    return experiment.scenario.offered(lone_s)


def reached(loads: Sequence[float], scores: Sequence[float]) -> float:
    """The largest load up to which the score stays above ENOUGH of the best one, between two
    points in proportion; the last point where it never falls, 0 where it is below at the first."""
    least = ENOUGH * max(scores)
    before = (0.0, scores[0])
    for load, score in zip(loads, scores, strict=True):
        if score < least:
            from_load, from_score = before
            if from_score <= score or not from_load:
                return from_load
            return from_load + (load - from_load) * (from_score - least) / (from_score - score)
        before = load, score
    return loads[-1]


# --- tables ---------------------------------------------------------------------------------------


def networks(runs: Runs) -> str:
    """What stands in for XRBench's networks, and what differs."""
    phone, rows = load_device(runs.device), []
    for name, row in NETWORKS.items():
        ms = phone.network(f"xrbench:{name}").ms
        theirs, ours = f"{row.layers}", f"{row.ops}"
        gmac = (f"{row.bound_gmac:g}", f"{row.gmac:.3g}")
        size = f"{row.input[0]}x{row.input[1]}"
        rows.append([f"`{name}`", size, theirs, ours, *gmac, f"{ms:.1f}"])
    columns = ["", "input", "its layers", "our nodes", "its bound, GMAC", "ours, GMAC"]
    return table([*columns, f"{runs.device}, ms"], rows)


def loads(runs: Runs) -> str:
    """What each scenario asks for as it is."""
    row = [f"{asked_for(name, runs.device):.1f}" for name in SCENARIOS]
    return table(["", *map(_short, SCENARIOS)], [[f"times the GPU of `{runs.device}`", *row]])


def headline(runs: Runs, draws: bool) -> str:
    """The largest load by system and scenario, and their mean."""
    rows = []
    for system in SYSTEMS:
        found = [reached(LOADS, runs.curve(name, system, draws)) for name in SCENARIOS]
        rows.append([f"`{system}`", *(f"{each:.2f}" for each in found), f"**{fmean(found):.2f}**"])
    return table(["largest load", *map(_short, SCENARIOS), "mean"], rows)


def curves(runs: Runs, draws: bool) -> str:
    """The score by load, the mean of all scenarios."""
    rows = []
    for system in SYSTEMS:
        each = [runs.curve(name, system, draws) for name in SCENARIOS]
        rows.append(
            [f"`{system}`", *(f"{fmean(scores):.1f}" for scores in zip(*each, strict=True))]
        )
    return table(["score at a load of", *(f"{load:g}" for load in LOADS)], rows)


def scores(runs: Runs, draws: bool) -> str:
    """The score of each scenario at one load, with intervals."""
    rows = []
    for system in SYSTEMS:
        cells = [
            cell(interval([run["score"] for run in _table(runs, name, system, draws)]))
            for name in SCENARIOS
        ]
        rows.append([f"`{system}`", *cells])
    return table(["score", *map(_short, SCENARIOS)], rows)


def frames(runs: Runs) -> str:
    """What rendering has beside: frames a second, and how late they are."""
    rows = []
    for system in SYSTEMS:
        drawn = [run for name in SCENARIOS for run in _table(runs, name, system, True)]
        alone = [run for name in SCENARIOS for run in _table(runs, name, system, False)]
        rows.append(
            [
                f"`{system}`",
                cell(interval([run["score"] for run in alone])),
                cell(interval([run["score"] for run in drawn])),
                cell(interval([run["fps"] for run in drawn])),
                cell(interval([run["p99"] for run in drawn])),
                cell(interval([100 * run["late"] for run in drawn])),
            ]
        )
    columns = ["score alone", "with a renderer", "fps", "interval p99, ms", "late, %"]
    return table(["", *columns], rows)


def _table(runs: Runs, scenario: str, system: str, draws: bool) -> Sequence[Run]:
    return runs.at(scenario, system, TABLE_LOAD, draws, runs.seeds)


def _short(scenario: str) -> str:
    return scenario.removeprefix("xrbench-")


PARTS: Mapping[str, Callable[[Runs], str]] = {
    "networks": networks,
    "loads": loads,
    "headline": lambda runs: headline(runs, False),
    "headline_drawn": lambda runs: headline(runs, True),
    "curves": lambda runs: curves(runs, False),
    "curves_drawn": lambda runs: curves(runs, True),
    "scores": lambda runs: scores(runs, False),
    "scores_drawn": lambda runs: scores(runs, True),
    "frames": frames,
    "live": lambda runs: xrbench_live.tables(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    parser.add_argument("--device", default=DEVICE, help="a phone of heimdall/lab/devices")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--output", type=Path, default=KEPT, help="where runs are kept (.jsonl)")
    parser.add_argument("--only", choices=list(PARTS), nargs="+", help="print these tables alone")
    arguments = parser.parse_args()
    for name in SCENARIOS:
        load_scenario(name)
    runs = Runs(arguments.device, arguments.seeds, Kept(arguments.output))
    if arguments.only:
        for name in arguments.only:
            print(f"{name}\n\n{PARTS[name](runs)}\n", flush=True)
        return
    tables = {name: part(runs) for name, part in PARTS.items()}
    numbers = {"seeds": runs.seeds, "few": runs.few, "load": TABLE_LOAD}
    text = filled(TEXT, {**tables, **numbers})
    if arguments.write:
        paths.replace_file(PAGE, text.encode())
    print(text)


if __name__ == "__main__":
    main()
