"""The results of many runs as tables for people: means, with half the 95% interval of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from heimdall.cli.cells import NONE, achieved, extremes, facts, mean, number, table

Over = Mapping[str, Any]


def seeds_report(result: Mapping[str, Any]) -> list[Table | str]:
    """One simulation with many chances of a scenario that draws: frames, then a line a DNN."""
    over, seeds = result["over_runs"], result["seeds"]
    first, device = result["runs"][0], result["device"]
    interval = over.get("frame_interval_ms", {})
    said = [
        ("simulated", f"{result['scenario']} on {device['gpu']} ({device['mode']})"),
        ("system", result["system"]),
        *varied(result["variations"]),
        (
            "runs",
            f"{len(seeds)} of {first['seconds']:.0f} s, seeds {seeds[0]} to {seeds[-1]}: means, "
            "and half the 95% interval of each",
        ),
        (
            "frames",
            f"{mean(over['fps'].get('mean'), 2)} fps of {first['fps_target']:g} (windows of 1/3 s: "
            f"{extremes(over['fps'].get('min'), over['fps'].get('max'))}), "
            f"{mean(over.get('late_rate'), 2, 100)}% late",
        ),
        ("interval", f"{mean(interval.get('p50'), 2)} ms p50, {mean(interval.get('p99'), 2)} p99"),
    ]
    if "gap_utilization" in over:
        said.append(("gaps", f"{mean(over['gap_utilization'], 1, 100)}% used"))
    columns = ["DNN", ">a second", ">mean ms", ">p99", ">longest", ">of all runs", ">missed %"]
    columns += [">GPU", ">CPU"]
    rows = [_dnn_row(name, dnn) for name, dnn in over["dnns"].items()]
    return [facts(said), "", table(None, columns, rows)]


def varied(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was varied, if anything, as a line of facts."""
    return [("with", _values(values))] if values else []


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {say(value)}" for name, value in values.items())


def say(value: object) -> str:
    """A varied value as one would type it."""
    if isinstance(value, list | tuple):
        return "x".join(map(say, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _dnn_row(name: str, dnn: Over) -> list[object]:
    latency = dnn.get("latency_ms", {})
    longest = latency.get("max")
    return [
        name,
        achieved(dnn),
        mean(latency.get("mean")),
        mean(latency.get("p99")),
        mean(longest),
        number(longest and longest["most"]),
        mean(dnn.get("miss_rate"), 1, 100),
        mean(dnn["gpu"]),
        mean(dnn["cpu"]),
    ]


def sweep_report(result: Mapping[str, Any]) -> list[Table | str]:
    """A line a point: what was varied, then frames, then each DNN."""
    points = result["points"]
    varied = list(dict.fromkeys(name for point in points for name in point["values"]))
    dnns = list(dict.fromkeys(dnn for point in points for dnn in _dnns(point)))
    columns = [*varied, "system", ">fps", ">late %"]
    for dnn in dnns:
        columns += [f">{dnn} ms", ">missed %", ">a second"]
    rows = [_point_row(point, varied, dnns) for point in points]
    seeds = result["seeds"]
    parts: list[Table | str] = [
        f"{result['title']}: {result['done']} of {result['runs']} runs of {result['seconds']:g} s, "
        f"{len(seeds)} seeds a point; means, and half the 95% interval of each"
    ]
    if rows:
        parts += ["", table(None, columns, rows)]
    parts += ["", f"kept in {result['output']}"]
    if result["interrupted"]:
        parts.append("interrupted: the same command goes on where it ended")
    return parts


def _point_row(
    point: Mapping[str, Any], varied: Sequence[str], dnns: Iterable[str]
) -> list[object]:
    over = point["over_runs"]
    values = [say(point["values"][name]) if name in point["values"] else NONE for name in varied]
    cells = [mean(over["fps"].get("mean"), 2), mean(over.get("late_rate"), 2, 100)]
    for name in dnns:
        dnn = over["dnns"].get(name)
        if dnn is None:
            cells += [NONE] * 3
            continue
        cells += [mean(dnn.get("latency_ms", {}).get("mean"))]
        cells += [mean(dnn.get("miss_rate"), 1, 100), mean(dnn.get("achieved_hz"), 2)]
    return [*values, point["system"], *cells]


def _dnns(point: Mapping[str, Any]) -> Iterable[str]:
    return point["over_runs"].get("dnns", {})
