"""Figures of requests as tables for people, and simulated systems side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table

from heimdall.bench.statistics import over_runs
from heimdall.cli import cells
from heimdall.cli.many_runs import varied
from heimdall.runtime.telemetry.jobs import MULTIPLES, SLO

Figures = Mapping[str, Any]
Cell = Callable[[Figures], str]
_KEYS = (*map(str, MULTIPLES), SLO)


def request_summary(run: Figures) -> list[Table | str]:
    """What one run did: a line a model, then its processors."""
    return seeds_of_requests({**run, "runs": [run], "over_runs": over_runs([run]), "seeds": [0]})


def seeds_of_requests(result: Figures) -> list[Table | str]:
    """The same of many runs: means, and half the 95% interval of each."""
    over, first, seeds = result["over_runs"], result["runs"][0], result["seeds"]
    device = result["device"]
    said = [
        ("simulated", f"{result['scenario']} on {device['mode'].removeprefix('simulated ')}"),
        ("system", result["system"]),
        *varied(result.get("variations", {})),
    ]
    if len(seeds) > 1:
        said.append(("runs", f"{len(seeds)}: means, and half the 95% interval of each"))
    said += [
        ("answered", f"{cells.mean(over.get('throughput_hz'), 2)} requests a second"),
        *(("rounds", f"{name}: {_fps(loop)}") for name, loop in over.get("frames", {}).items()),
        ("processors", ", ".join(_busy(over))),
    ]
    columns = ["model", ">alone ms", ">asked", ">dropped", ">mean ms", ">p50", ">p99", ">longest"]
    with_exits = _with_exits(over)
    columns += [">jitter ms", *_violated_columns(), *([">accuracy %"] if with_exits else ())]
    rows = [_model_row(name, each) for name, each in over["requests"].items()]
    rows.append(["all", *[""] * 8, *_violated(over)])
    if with_exits:
        for row, each in zip(rows, (*over["requests"].values(), over), strict=True):
            row.append(_accuracy(each))
        columns += ["exits", ">preempted"]
        for row, each in zip(rows, (*over["requests"].values(), {}), strict=True):
            row += [_taken(each), _plain("preempted", 0)(each) if each else ""]
    parts: list[Table | str] = [cells.facts(said), "", cells.table(None, columns, rows)]
    errors = [f"error: {error}" for error in first.get("errors", ())]
    return parts + (["", *errors] if errors else [])


def compared(result: Figures) -> list[Table | str]:
    """Systems side by side, simulated or with requests: a line each, then each model's, or DNN's,
    figures."""
    over = result["over_runs"]
    failed = [f"failed: {failure}" for failure in result["failures"]]
    if not over:
        return [*failed]
    seeds, device = result["seeds"], result["device"]
    parts: list[Table | str] = [f"{result['title']} on {device['gpu']}, {device['mode']}", *failed]
    if len(seeds) > 1:
        parts.append(f"{len(seeds)} seeds: means, and half the 95% interval of each")
    if any("violations" in each for each in over.values()):
        with_exits = any(_with_exits(each) for each in over.values())
        figures = (*_MODEL_FIGURES, *(_EXIT_FIGURES if with_exits else ()))
        parts += ["", _systems(over), "", _by_name(over, "requests", "model", figures)]
        return parts
    return [*parts, "", _drawing(over), "", _by_name(over, "dnns", "DNN", _DNN_FIGURES)]


def _systems(over: Figures) -> Table:
    """A line a system that answers requests."""
    loops = list(dict.fromkeys(loop for each in over.values() for loop in each.get("frames", {})))
    columns = ["system", ">answered a second", *(f">{loop} rounds a second" for loop in loops)]
    with_exits = any(_with_exits(each) for each in over.values())
    columns += [*_violated_columns(), *([">accuracy %"] if with_exits else ()), "processors busy"]
    rows = [
        [
            name,
            cells.mean(each.get("throughput_hz"), 2),
            *(cells.mean(each["frames"][loop].get("fps"), 2) for loop in loops),
            *_violated(each),
            *([_accuracy(each)] if with_exits else ()),
            ", ".join(_busy(each)),
        ]
        for name, each in over.items()
    ]
    return cells.table(None, columns, rows)


def _drawing(over: Figures) -> Table:
    """A line a system that draws."""
    columns = ["system", ">fps", ">windows of 1/3 s", ">interval p99 ms", ">late %"]
    columns += [">GPU busy s", ">CPU core s"]
    rows = [
        [
            name,
            cells.mean(each["fps"].get("mean"), 2),
            cells.extremes(each["fps"].get("min"), each["fps"].get("max")),
            cells.mean(each["frame_interval_ms"].get("p99")),
            cells.mean(each.get("late_rate"), 1, 100),
            cells.mean(each["gpu"].get("busy_ms"), 1, 1e-3),
            cells.mean(each.get("cpu_core_s"), 1),
        ]
        for name, each in over.items()
    ]
    return cells.table(None, columns, rows)


def _by_name(over: Figures, key: str, kind: str, figures: Sequence[tuple[str, Cell]]) -> Table:
    """A line for each figure of each model or DNN, with a column a system."""
    names = list(dict.fromkeys(name for each in over.values() for name in each[key]))
    rows = [
        [f"{name} {what}", *(cell(each[key][name]) for each in over.values())]
        for name in names
        for what, cell in figures
    ]
    return cells.table(None, [kind, *(f">{name}" for name in over)], rows)


def _with_exits(over: Figures) -> bool:
    """Whether any model has early exits."""
    return any(each.get("accuracy") for each in over["requests"].values())


def _accuracy(figures: Figures) -> str:
    return cells.mean(figures.get("accuracy"), 1, 100)


def _taken(figures: Figures) -> str:
    """How often each exit was taken."""
    exits = figures.get("exits", {})
    return ", ".join(f"{name} {each['mean']:.0f}" for name, each in exits.items())


def _latency(key: str) -> Cell:
    return lambda figures: cells.mean(figures.get("latency_ms", {}).get(key))


def _late(key: str) -> Cell:
    return lambda figures: cells.mean(figures.get("violations", {}).get(key), 1, 100)


def _plain(key: str, digits: int = 1, scale: float = 1) -> Cell:
    return lambda figures: cells.mean(figures.get(key), digits, scale)


_MODEL_FIGURES: Sequence[tuple[str, Cell]] = (
    ("mean ms", _latency("mean")),
    ("p99 ms", _latency("p99")),
    ("jitter ms", _plain("jitter_ms")),
    ("over 4x %", _late("4")),
    ("over SLO %", _late(SLO)),
    ("dropped", _plain("dropped", 0)),
)
_EXIT_FIGURES: Sequence[tuple[str, Cell]] = (
    ("accuracy %", lambda figures: _accuracy(figures)),
    ("exits", lambda figures: _taken(figures)),
    ("preempted", _plain("preempted", 0)),
)
_DNN_FIGURES: Sequence[tuple[str, Cell]] = (
    ("mean ms", _latency("mean")),
    ("p99 ms", _latency("p99")),
    ("longest ms", _latency("max")),
    ("missed %", _plain("miss_rate", 1, 100)),
    ("utility", _plain("utility", 2)),
    ("a second", cells.achieved),
)


def _model_row(name: str, model: Figures) -> list[object]:
    return [
        name,
        _plain("lone_ms")(model),
        *(_plain(key, 0)(model) for key in ("submitted", "dropped")),
        *(_latency(key)(model) for key in ("mean", "p50", "p99", "max")),
        _plain("jitter_ms")(model),
        *_violated(model),
    ]


def _violated_columns() -> list[str]:
    return [*(f">over {multiple}x %" for multiple in MULTIPLES), ">over SLO %"]


def _violated(figures: Figures) -> list[str]:
    return [_late(key)(figures) for key in _KEYS]


def _busy(over: Figures) -> list[str]:
    return [
        f"{name} {cells.mean(each.get('busy'), 0, 100)}%"
        for name, each in over.get("processors", {}).items()
    ]


def _fps(loop: Figures) -> str:
    spent = loop.get("latency_ms", {})
    return (
        f"{cells.mean(loop.get('fps'), 2)} a second, {cells.mean(spent.get('mean'))} ms each "
        f"({cells.mean(spent.get('p99'))} p99)"
    )
