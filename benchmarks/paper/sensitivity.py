"""How far the headlines hold: the simulated phone with one assumption changed at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from benchmarks.paper.kept import Kept
from benchmarks.paper.runs import LG, Run, all_runs
from benchmarks.paper.simulated import Point, over_seeds, point, with_derived
from benchmarks.paper.values import Headline, look_up
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.device import load_device

RUNS = (
    "alone",
    "together",
    "4 drawn",
    "shopping multithread",
    "shopping priorities",
    "shopping max-total-static",
    "shopping max-total",
)
OTHERS = (  # where a network goes, and how often, in other scenarios
    "workspace max-total",
    "emoji multithread",
    "emoji max-total",
    "three max-min-nooffload",
    "three max-min",
)
CLIPS = ("none", "desk", "single_face", "box", "cup")
Value = float | str


@dataclass(frozen=True)
class Parameter:
    """One assumption: a name of ``lab.simulator.variations`` or ``simulated.OF_PROFILE``, and
    the values that are tried. ``usual``: the profile's, or the machine's, own. ``of_all``: systems
    without a coordinator have it, too; ``others``: other scenarios are tried as well.
    """

    name: str
    title: str
    values: tuple[Value, ...]
    usual: Value
    of_all: bool = True
    others: bool = False

    @property
    def tried(self) -> str:
        """The values in short."""
        values = self.values
        return ", ".join(map(str, values)) if isinstance(values[-1], str) else _range(values)

    @property
    def said_usual(self) -> str:
        return self.usual if isinstance(self.usual, str) else f"{self.usual:g}"


@cache
def parameters() -> tuple[Parameter, ...]:
    """All that is varied. Clips are those whose luminance differences Eq. 4 is given."""
    phone = load_device(LG)
    gpu, cpu = phone.gpu, phone.cpu
    part_ms = phone.part_cost_ns / 1e6
    return (
        Parameter(
            "turn_ms", "driver's turn, ms", (10, 12, 20, 29, 40, 47, 50), gpu.batch_ms, others=True
        ),
        Parameter("switch_ms", "switch, ms", (0, 1, 2, 2.5, 3), gpu.switch_ms),
        Parameter("slowdown", "one core / GPU", (2, 2.25, 2.5, 2.72, 3), cpu.slowdown, others=True),
        Parameter("gpu_noise", "GPU noise", (0.01, 0.05, 0.1, 0.2), gpu.noise),
        Parameter("render_noise", "rendering noise", (0, 0.1, 0.2, 0.5), 0),
        Parameter("part_cost_ms", "part of a chunk, ms", (0, 0.1, 0.2, 0.4), part_ms, False),
        Parameter("luminance", "moving scene", CLIPS, CLIPS[0], False),
        Parameter("cpu_workers", "CPU workers", (1, 2, 3, 4), 1, False, others=True),
        Parameter("op_spread", "spread of ops", (0.25, 0.5, 0.75, 1), phone.op_spread),
        Parameter("scatter", "places of CPU ops", (0, 1, 2, 3, 4), 0),
    )


def points(seeds: int, seconds: float) -> list[Point]:
    """Every value of every parameter, seed by seed."""
    return [
        point(run, seed, seconds, changes)
        for seed in range(seeds)
        for parameter in parameters()
        for value in parameter.values
        for run in _runs(parameter)
        for changes in (_changes(parameter, value),)
    ]


def collected(
    kept: Kept, seeds: int, seconds: float
) -> dict[str, list[tuple[Value, dict[str, Any]]]]:
    """By parameter: each value, and results over seeds by the paths of values.toml."""
    found: dict[str, list[tuple[Value, dict[str, Any]]]] = {}
    for parameter in parameters():
        found[parameter.name] = []
        for value in parameter.values:
            changes = _changes(parameter, value)
            each = []
            for seed in range(seeds):
                runs = {
                    run.name: result
                    for run in _runs(parameter)
                    for task in (point(run, seed, seconds, changes).task,)
                    if (result := kept.get(task, any_source=True))
                }
                if runs:
                    each.append(with_derived({"runs": runs}))
            if each:
                found[parameter.name].append((value, over_seeds(each)))
    return found


def holding(
    headline: Headline, tried: Sequence[tuple[Value, Mapping[str, Any]]]
) -> list[tuple[Value, bool]]:
    """At which values the headline holds; values without a result are left out."""
    return [
        (value, headline.holds(found["mean"]))
        for value, results in tried
        if (found := look_up(results, headline.at)) is not None
    ]


def in_words(held: Sequence[tuple[Value, bool]]) -> str:
    """``10 to 29, 50``, or ``none``: where it holds of the values that were tried."""
    if not held:
        return "–"
    if all(holds for _, holds in held):
        return "all"
    groups = groupby(held, lambda one: one[1])
    said = [_range([value for value, _ in group]) for holds, group in groups if holds]
    return ", ".join(said) or "none"


def _range(values: Sequence[Value]) -> str:
    if isinstance(values[0], str):
        return ", ".join(map(str, values))
    ends = dict.fromkeys((values[0], values[-1]))
    return " to ".join(f"{value:g}" for value in ends)


def _changes(parameter: Parameter, value: Value) -> dict[str, Value]:
    """What ``point`` is to change; nothing at the usual value, so that all share its runs."""
    return {} if value == parameter.usual else {parameter.name: value}


def _runs(parameter: Parameter) -> list[Run]:
    wanted = (*RUNS, *OTHERS) if parameter.others else RUNS
    return [
        run
        for run in all_runs()
        if run.name in wanted and (parameter.of_all or parse_system(run.system).coordinated)
    ]
