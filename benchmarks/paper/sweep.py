"""Past the paper (section 10.2): other frame rates, sizes and numbers of DNNs, simulated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import geometric_mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.paper.kept import Kept
from benchmarks.paper.runs import LG
from benchmarks.paper.simulated import Point
from benchmarks.paper.values import look_up
from heimdall.analyzer.plot import COLOURS, OTHER
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.settings import DnnSettings
from heimdall.lab.simulator.device import load_device
from heimdall.runtime.telemetry.statistics import over_runs

SYSTEMS = ("multithread", "max-total")
RATES = (30, 60)
SIZES = ((1280, 720), (1920, 1080), (2560, 1440), (3840, 2160))
HELD = 0.99  # of the target, in the mean


def points(seeds: int, seconds: float) -> list[Point]:
    """Every frame rate, size, number of DNNs and system. DNNs are those of Table 2 in its order,
    back to back, wanted once a second."""
    return [
        _point(fps, size, count, system, seed, seconds)
        for seed in range(seeds)
        for fps in RATES
        for size in SIZES
        for count in range(1, len(_names()) + 1)
        for system in SYSTEMS
    ]


def collected(kept: Kept, seeds: int, seconds: float) -> list[dict[str, Any]]:
    """One entry for each that has run: its ``rate`` (as ``fps`` of a summary), how much longer
    than alone its DNNs took (``slower``: geometric mean), and the share of inferences that
    ``missed`` their second, as ``over_runs`` has them; DNNs that ``never`` ended."""
    found = []
    for fps in RATES:
        for size in SIZES:
            for count in range(1, len(_names()) + 1):
                for system in SYSTEMS:
                    each = [
                        result
                        for seed in range(seeds)
                        for task in (_point(fps, size, count, system, seed, seconds).task,)
                        if (result := kept.get(task, any_source=True))
                    ]
                    if each:
                        about = {"fps": fps, "size": list(size), "dnns": count, "system": system}
                        found.append({**about, **_together(each)})
    return found


def _together(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What runs with several seeds say."""
    found = over_runs([{"rate": run["fps"], **_of_run(run["dnns"])} for run in each])
    never = [
        name
        for name, dnn in each[0]["dnns"].items()
        if all(_mean(run, name) is None for run in each)
    ]
    return {"slower": None, **found, "never": never}


def _of_run(dnns: Mapping[str, Any]) -> dict[str, float]:
    alone = _alone_ms()
    means = {name: dnn["latency_ms"]["mean"] for name, dnn in dnns.items()}
    count = sum(dnn["inferences"] for dnn in dnns.values())
    missed = sum(round((dnn["miss_rate"] or 0.0) * dnn["inferences"]) for dnn in dnns.values())
    slower = [mean / alone[name] for name, mean in means.items() if mean is not None]
    found = {"missed": missed / max(1, count)}
    if len(slower) == len(means):
        found["slower"] = geometric_mean(slower)
    return found


def _mean(run: Mapping[str, Any], name: str) -> float | None:
    mean: float | None = run["dnns"][name]["latency_ms"]["mean"]
    return mean


def _point(
    fps: int, size: tuple[int, int], count: int, system: str, seed: int, seconds: float
) -> Point:
    return Point(_scenario(_names()[:count], fps, size), system, seed, seconds)


@cache
def _alone_ms() -> dict[str, float]:
    return {name: network.ms for name, network in load_device(LG).networks.items()}


@cache
def _names() -> tuple[str, ...]:
    return tuple(load_device(LG).networks)


@cache
def _scenario(names: tuple[str, ...], fps: int, size: tuple[int, int]) -> Scenario:
    dnns = {name: DnnSettings(reference=name, rate_hz=1) for name in names}
    return Scenario(name="sweep", title="Sweep", fps=fps, size=size, dnns=dnns)


def held(points: Sequence[Mapping[str, Any]], fps: int, size: Sequence[int], system: str) -> int:
    """The largest number of DNNs up to which the frame rate holds."""
    count = 0
    for point in series(points, fps, size, system):
        if point["rate"]["mean"]["mean"] < HELD * fps:
            break
        count = point["dnns"]
    return count


def draw(points: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Frame rates above, slow-down of the DNNs below; a column a size, for each rate."""
    if not points:
        return None
    figure = Figure(figsize=(13, 10))
    rows = figure.subplots(2 * len(RATES), len(SIZES), sharex=True, sharey="row")
    for row, fps in enumerate(RATES):
        for column, size in enumerate(SIZES):
            above, below = rows[2 * row][column], rows[2 * row + 1][column]
            for index, system in enumerate(SYSTEMS):
                found = series(points, fps, size, system)
                _draw_rate(above, found, COLOURS[1 - index], system)
                counts = [point["dnns"] for point in found]
                slower = [look_up(point, "slower/mean") or math.nan for point in found]
                below.plot(counts, slower, marker="o", markersize=3, color=COLOURS[1 - index])
            above.axhline(fps, color=OTHER, linestyle="--", linewidth=1)
            above.set_title(f"{fps} fps at {size[1]}p", fontsize=10)
            above.set_ylim(bottom=0)
            below.set_yscale("log", base=2)
            below.yaxis.set_major_formatter("{x:g}")
            for axes in (above, below):
                axes.spines[["top", "right"]].set_visible(False)
        rows[2 * row][0].set_ylabel("frames per second")
        rows[2 * row + 1][0].set_ylabel("latency / alone")
    for axes in rows[-1]:
        axes.set_xlabel("DNNs back to back")
    rows[0][0].legend(frameon=False, loc="lower left", fontsize=8)
    return figure


def _draw_rate(axes: Axes, found: Sequence[Mapping[str, Any]], colour: str, system: str) -> None:
    counts = [point["dnns"] for point in found]
    rates = [point["rate"] for point in found]
    axes.fill_between(
        counts,
        [rate["min"]["least"] for rate in rates],
        [rate["max"]["most"] for rate in rates],
        color=colour,
        alpha=0.25,
        linewidth=0,
    )
    means = [rate["mean"]["mean"] for rate in rates]
    axes.plot(counts, means, marker="o", markersize=3, color=colour, label=system)


def series(
    points: Sequence[Mapping[str, Any]], fps: int, size: Sequence[int], system: str
) -> list[Mapping[str, Any]]:
    asked = (fps, list(size), system)
    return [each for each in points if (each["fps"], each["size"], each["system"]) == asked]
