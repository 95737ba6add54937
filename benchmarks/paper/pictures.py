"""The figures of the page as pictures: the paper's numbers, the simulation's and the live ones.

Bars are means; a line from the mean upward ends at the longest latency, one across a bar spans
what the legend says.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from benchmarks.paper import contest, excerpts, ranges, sweep
from benchmarks.paper.values import look_up
from heimdall.analyzer.plot import COLOURS, OTHER

if TYPE_CHECKING:
    from benchmarks.paper.findings import Findings

Results = Mapping[str, Any]
PAPER, SIMULATED, LIVE = OTHER, COLOURS[0], COLOURS[1]
DNNS = {"style": "StyleTransfer", "hand": "PoseNet", "segment": "DeepLab-v3", "detect": "YOLO-v2"}
SYSTEMS = {
    "multithread": "multi-\nthread",
    "fixed-5": "fixed-5",
    "max-total-static": "static",
    "max-total": "elastic",
}
_DPI, _COLOURS = 110, 64
Bar = tuple[float, float, float]  # height, and the ends of the line across


def draw(findings: Findings, folder: Path) -> dict[str, Path]:
    """Draw all that there are results for; paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name, make in _PICTURES.items():
        figure = make(findings)
        if figure is not None:
            figure.tight_layout()
            drawn[name] = folder / f"paper-{name}.png"
            _save(figure, drawn[name])
    return drawn


def _save(figure: Figure, path: Path) -> None:
    """Few colours: a fifth of what an SVG of as many lines takes, and less to download."""
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", dpi=_DPI, bbox_inches="tight")
    with Image.open(pixels) as picture:
        picture.convert("RGB").quantize(_COLOURS).save(path, optimize=True)


# --- pieces -------------------------------------------------------------------------------------


def _axes(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height))
    found = figure.subplots(1, columns, squeeze=False)[0]
    for axes in found:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(found)


def _groups(
    axes: Axes, labels: Sequence[str], series: Mapping[str, tuple[str, Sequence[Bar | None]]]
) -> None:
    """A group of bars for each label: one a series (its colour, and its bars)."""
    shown = {name: each for name, each in series.items() if any(each[1])}
    width = 0.8 / max(1, len(shown))
    for index, (name, (colour, bars)) in enumerate(shown.items()):
        at = np.arange(len(labels)) + (index - (len(shown) - 1) / 2) * width
        known = [(x, bar) for x, bar in zip(at, bars, strict=True) if bar is not None]
        xs, heights = [x for x, _ in known], [bar[0] for _, bar in known]
        error = [[max(0.0, bar[0] - bar[1]) for _, bar in known]]
        error.append([max(0.0, bar[2] - bar[0]) for _, bar in known])
        axes.bar(xs, heights, width, color=colour, label=name, yerr=error, capsize=2,
                 error_kw={"linewidth": 1})  # fmt: skip
        for x, bar in known:
            axes.annotate(_short(bar[0]), (x, max(bar[0], bar[2])), (0, 3), ha="center",
                          textcoords="offset points", fontsize=6, rotation=90)  # fmt: skip
    axes.margins(y=0.12)
    axes.set_xticks(range(len(labels)), labels, fontsize=8)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))


def _places(findings: Findings) -> dict[str, tuple[str, Results]]:
    found = {"simulated": (SIMULATED, findings.simulated)}
    if findings.live is not None:
        found["live"] = (LIVE, findings.live)
    return found


def _mean(results: Results | None, path: str) -> float | None:
    found = look_up(results, path)
    value: float | None = found.get("mean") if isinstance(found, Mapping) else found
    return value


def _latency(results: Results, path: str) -> Bar | None:
    """A mean, with a line up to the longest (mean over runs)."""
    mean, longest = (_mean(results, f"{path}/latency_ms/{part}") for part in ("mean", "max"))
    return None if mean is None or longest is None else (mean, mean, longest)


def _rate(results: Results, run: str) -> Bar | None:
    """A mean frame rate, with a line from the lowest to the highest third of a second."""
    path = f"runs/{run}/fps"
    mean = _mean(results, f"{path}/mean")
    low, high = look_up(results, f"{path}/min/least"), look_up(results, f"{path}/max/most")
    return None if mean is None else (mean, low, high)


def _flat(value: float | None) -> Bar | None:
    return None if value is None else (value, value, value)


# --- the figures ---------------------------------------------------------------------------------


def _fig_2(findings: Findings) -> Figure:
    labels = {"StyleTransfer\nalone": "alone/dnns/style", "StyleTransfer": "together/dnns/style"}
    labels |= {DNNS[name]: f"together/dnns/{name}" for name in ("hand", "segment", "detect")}
    figure, (axes,) = _axes(8, 3.4)
    paper: list[Bar | None] = [(59.93, 56.25, 63.61), (1181, 513, 1849), None, None, None]
    series: dict[str, tuple[str, Sequence[Bar | None]]] = {"paper (± std)": (PAPER, paper)}
    for place, (colour, results) in _places(findings).items():
        bars = [_latency(results, f"runs/{path}") for path in labels.values()]
        series[f"{place} (line: longest)"] = (colour, bars)
    _groups(axes, list(labels), series)
    axes.set_ylabel("ms, all four back to back")
    _legend(axes)
    return figure


def _fig_4(findings: Findings) -> Figure:
    runs = ["nothing but drawn", *(f"{count} drawn" for count in range(1, 5))]
    figure, (axes,) = _axes(6, 3.2)
    axes.plot([0, 4], [30, 11.31], "D", color=PAPER, label="paper", zorder=5)
    for place, (colour, results) in _places(findings).items():
        known = [(n, bar) for n, run in enumerate(runs) if (bar := _rate(results, run))]
        if known:
            counts = [n for n, _ in known]
            axes.fill_between(counts, [bar[1] for _, bar in known], [bar[2] for _, bar in known],
                              color=colour, alpha=0.2, linewidth=0)  # fmt: skip
            axes.plot(counts, [bar[0] for _, bar in known], "o-", color=colour, label=place)
    axes.set_xticks(range(5))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("networks back to back (band: thirds of a second)")
    axes.set_ylabel("frames per second")
    _legend(axes)
    return figure


def _fig_12(findings: Findings) -> Figure:
    labels = {
        "1": "1 op",
        "2": "2",
        "5": "5",
        "10": "10",
        "20": "20",
        "chunks": "chunks for\n30 fps",
    }
    figure, (axes,) = _axes(6, 3)
    paper: list[Bar | None] = [(41.5, 13, 70), *[None] * 5]
    series: dict[str, tuple[str, Sequence[Bar | None]]] = {"paper (range)": (PAPER, paper)}
    for place, (colour, results) in _places(findings).items():
        found = [look_up(results, f"derived/longer/{way}") for way in labels]
        bars = [
            each and tuple(100 * (_mean(each, part) or 0.0) for part in ("mean", "min", "max"))
            for each in found
        ]
        series[place] = (colour, bars)
    _groups(axes, list(labels.values()), series)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_ylabel("longer than in one piece, %\n(line: networks)")
    _legend(axes)
    return figure


def _fig_14a(findings: Findings) -> Figure:
    figure, (axes,) = _axes(6.5, 3.2)
    paper: list[Bar | None] = [(11.99, 6.82, 17.70), None, (29.96, 29.96, 29.96), None]
    series: dict[str, tuple[str, Sequence[Bar | None]]] = {"paper": (PAPER, paper)}
    for place, (colour, results) in _places(findings).items():
        series[place] = (colour, [_rate(results, f"shopping {system}") for system in SYSTEMS])
    _groups(axes, list(SYSTEMS.values()), series)
    axes.axhline(30, color=OTHER, linestyle="--", linewidth=0.8, zorder=0)
    axes.set_ylabel("frames per second\n(line: thirds of a second)")
    _legend(axes)
    return figure


def _fig_14b(findings: Findings) -> Figure:
    every = _places(findings)
    places = {
        place: found
        for place, found in every.items()
        if place == "simulated" or look_up(found[1], "runs/shopping max-total")
    }
    figure, found = _axes(5.5 * len(places), 3.4, len(places))
    paper = {"style": (109, 109, 139), "hand": (409, 409, 548), "segment": (919, 919, 1064)}
    shades = ("#bbbbbb", "#888888", COLOURS[2], COLOURS[0])
    for axes, (place, (_, results)) in zip(found, places.items(), strict=True):
        series: dict[str, tuple[str, Sequence[Bar | None]]] = {
            "paper": (COLOURS[3], [paper.get(name) for name in DNNS])
        }
        for shade, (system, said) in zip(shades, SYSTEMS.items(), strict=True):
            bars = [_latency(results, f"runs/shopping {system}/dnns/{name}") for name in DNNS]
            series[said.replace("-\n", "")] = (shade, bars)
        _groups(axes, list(DNNS.values()), series)
        axes.set_title(place, fontsize=10, loc="right")
        axes.set_ylabel("ms (line: longest)")
        axes.legend(frameon=False, fontsize=7)
    return figure


def _fig_15(findings: Findings) -> Figure:
    ways = [(system, name) for name in (*DNNS, "") for system in ("max-total-static", "max-total")]
    figure, (axes,) = _axes(7.5, 3)
    series: dict[str, tuple[str, Sequence[Bar | None]]] = {}
    for place, (colour, results) in _places(findings).items():
        bars = []
        for system, name in ways:
            part = f"overhead/{name}" if name else "overhead_of_all"
            mean = _mean(results, f"runs/shopping {system}/{part}")
            bars.append(None if mean is None else _flat(100 * mean))
        series[place] = (colour, bars)
    labels = [f"{DNNS.get(name, 'all')}\n{SYSTEMS[system]}" for system, name in ways]
    _groups(axes, labels, series)
    axes.tick_params(axis="x", labelsize=6)
    axes.set_ylabel("chunks against\none piece, %")
    _legend(axes)
    return figure


def _fig_18(findings: Findings) -> Figure:
    places = _places(findings)
    figure, found = _axes(12, 3, 4)
    dnns = {"workspace": {"text": "EAST", "hand": "PoseNet"}}
    dnns["emoji"] = {"style": "Style", "face": "Retina", "segment": "DeepLab"}
    for index, (scenario, names) in enumerate(dnns.items()):
        rates, latencies = found[2 * index], found[2 * index + 1]
        runs = [f"{scenario} {system}" for system in SYSTEMS]
        _groups(
            rates,
            list(SYSTEMS.values()),
            {
                place: (colour, [_rate(results, run) for run in runs])
                for place, (colour, results) in places.items()
            },
        )
        rates.set_ylabel(f"{scenario}: frames per second", fontsize=8)
        pairs = [(name, system) for name in names for system in ("multithread", "max-total")]
        _groups(
            latencies,
            [f"{names[name]}\n{SYSTEMS[system]}" for name, system in pairs],
            {
                place: (
                    colour,
                    [_latency(results, f"runs/{scenario} {s}/dnns/{name}") for name, s in pairs],
                )
                for place, (colour, results) in places.items()
            },
        )
        latencies.set_ylabel(f"{scenario}: ms (line: longest)", fontsize=8)
    for axes in found:
        axes.tick_params(axis="x", labelsize=5.5)
    _legend(found[0])
    return figure


def _table_4(findings: Findings) -> Figure | None:
    if not look_up(findings.simulated, "accuracy"):
        return None
    figure, found = _axes(8, 3, 2)
    paper = {"face": {"multithread": (0.52, 0.12), "fixed-5": (0.57, 0.12)}}
    paper["face"]["max-total-static"] = (0.63, 0.11)
    paper["segment"] = {"multithread": (0.93, 0.02), "fixed-5": (0.92, 0.02)}
    paper["segment"]["max-total-static"] = (0.90, 0.03)
    for axes, (dnn, title) in zip(
        found, {"face": "boxes", "segment": "masks"}.items(), strict=True
    ):
        given = [paper[dnn].get(system) for system in SYSTEMS]
        bars = [each and (each[0], each[0] - each[1], each[0] + each[1]) for each in given]
        series: dict[str, tuple[str, Sequence[Bar | None]]] = {"paper": (PAPER, bars)}
        for place, (colour, results) in _places(findings).items():
            scores = [look_up(results, f"accuracy/{dnn}/{system}/held") for system in SYSTEMS]
            series[place] = (colour, [_spread(each) for each in scores])
        _groups(axes, list(SYSTEMS.values()), series)
        axes.set_title(title, fontsize=9, loc="right")
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("IoU (± std)")
    _legend(found[0])
    return figure


def _spread(score: Mapping[str, float] | None) -> Bar | None:
    if score is None:
        return None
    return (score["mean"], score["mean"] - score["std"], score["mean"] + score["std"])


def _baselines(findings: Findings) -> Figure | None:
    """Style's mean and longest latency under each system, and how many frames are late for it."""
    places: dict[str, list[tuple[str, Results | None]]] = {
        "simulated": contest.simulated_rows(findings)
    }
    if findings.live is not None:
        live = findings.live
        places["live"] = [(name, look_up(live, f"runs/shopping {name}")) for name in contest.ORDER]
    places = {place: rows for place, rows in places.items() if any(run for _, run in rows)}
    if not places:
        return None
    figure, found = _axes(5.5 * len(places), 4.5, len(places))
    for axes, (place, rows) in zip(found, places.items(), strict=True):
        _draw_systems(axes, [(name, run) for name, run in rows if run])
        axes.set_title(place, fontsize=9, loc="right")
    return figure


def _draw_systems(axes: Axes, rows: Sequence[tuple[str, Results]]) -> None:
    """A line a system, from style's mean to its longest."""
    names: list[str] = []
    for name, run in rows:
        mean, longest = (_mean(run, f"dnns/style/latency_ms/{part}") for part in ("mean", "max"))
        late = _mean(run, "late_rate")
        if mean is None or longest is None or late is None:
            continue
        y, colour = len(names), SIMULATED if name.startswith("max-total") else LIVE
        axes.plot([mean, longest], [y, y], "-", color=colour)
        axes.plot(mean, y, "o", color=colour)
        axes.annotate(
            f"{100 * late:.0f}% late", (longest, y), (4, -2), textcoords="offset points", fontsize=6
        )
        names.append(name)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("StyleTransfer, ms: mean (dot) to longest")


_PICTURES: dict[str, Callable[[Findings], Figure | None]] = {
    "sensitivity": lambda findings: ranges.draw(findings.sensitivity),
    "baselines": _baselines,
    "fig-2": _fig_2,
    "fig-4": _fig_4,
    "fig-12": _fig_12,
    "fig-14a": _fig_14a,
    "fig-14b": _fig_14b,
    "fig-15": _fig_15,
    "fig-16": lambda findings: excerpts.draw(
        findings.simulated,
        {
            "MaxMinUtility": "three max-min-nooffload",
            "MaxTotalUtility": "three max-total-nooffload",
        },
    ),
    "fig-17": lambda findings: excerpts.draw(
        findings.simulated, {"MaxMinUtility with offloading": "three max-min"}
    ),
    "fig-18": _fig_18,
    "table-4": _table_4,
    "sweep": lambda findings: sweep.draw(findings.sweep),
}
