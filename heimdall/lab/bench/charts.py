"""The charts of the Heimdall paper (Figs. 14-17) as SVG, from what a comparison measured.

A system has the same shade and a DNN the same colour wherever it is drawn on a page.
"""

from __future__ import annotations

import io
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from heimdall.analyzer.plot import COLOURS, OTHER
from heimdall.lab.bench.timeline import Span, Timeline
from heimdall.runtime.telemetry.jobs import MULTIPLES
from heimdall.vocabulary.enums import Lane

Summaries = Mapping[str, Mapping[str, Any]]
EXCERPT_MS = 3000.0  # of utility and occupancy: as much as a reader can tell apart
_LEAST_UTILITY = -1.5  # lower ones are cut off: a fresh result is worth 1
_NAME_WIDTH = 14  # letters of a system's name under its bar


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each DNN."""
    return {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}


def shades(systems: Sequence[str]) -> dict[str, str]:
    """A shade for each system, from light to dark, of a hue that no DNN has."""
    ramp = mpl.colormaps["Purples"](np.linspace(0.4, 0.8, max(len(systems), 1)))
    return {system: to_hex(colour) for system, colour in zip(systems, ramp, strict=False)}


def fps_chart(systems: Summaries) -> str:
    """Mean frame rate, with the lowest and highest third of a second (Fig. 14a)."""
    figure, axes = _figure(4.2, 1.25 * len(systems))
    mean, low, high = (
        np.array([run["fps"][key] or 0.0 for run in systems.values()])
        for key in ("mean", "min", "max")
    )
    error = np.maximum([mean - low, high - mean], 0)
    names = [textwrap.fill(name, _NAME_WIDTH) for name in systems]
    axes.bar(names, mean, 0.6, yerr=error, capsize=4, color=list(shades([*systems]).values()))
    for index, value in enumerate(mean):
        axes.annotate(
            f"{value:.1f}", (index, max(value, high[index])), (0, 4), ha="center",
            textcoords="offset points",
        )  # fmt: skip
    target = max((run["fps_target"] for run in systems.values()), default=0)
    axes.axhline(target, color=OTHER, linestyle="--", linewidth=1, zorder=0)
    axes.set_xlim(-0.6, len(systems) - 0.4)
    axes.set_ylim(0, 1.12 * max([target, *high]))
    axes.set_ylabel("frames per second (dashes: target)")
    return _svg(figure)


def latency_chart(systems: Summaries, of: str = "dnns") -> str:
    """Mean and longest latency of each DNN (of "requests": model) under each system (Fig. 14b)."""
    names = list(dict.fromkeys(name for run in systems.values() for name in run[of]))
    means, longest = (
        {
            system: np.array([run[of][name]["latency_ms"][key] or 0.0 for name in names])
            for system, run in systems.items()
        }
        for key in ("mean", "max")
    )
    above = {system: np.maximum(longest[system] - means[system], 0) for system in systems}
    figure, axes = _figure(4.2, 0.6 * len(systems) * len(names))
    _draw_groups(axes, names, means, shades([*systems]), above)
    axes.set_ylabel("latency, ms (mean; line: longest)")
    return _svg(figure)


def violation_chart(over: Summaries) -> str:
    """The share of requests that were dropped or took longer than a multiple of what their model
    takes alone (SPLIT, Fig. 6), over runs (``statistics.over_runs``)."""
    figure, axes = _figure(4.2, 7.0)
    chosen = colours(over)
    for system, run in over.items():
        found = [run["violations"][str(k)] for k in MULTIPLES if str(k) in run["violations"]]
        if len(found) == len(MULTIPLES):
            shares, low, high = (
                np.array(
                    [100 * (each[key] if each[key] is not None else each["mean"]) for each in found]
                )
                for key in ("mean", "low", "high")
            )
            axes.plot(MULTIPLES, shares, marker="o", label=system, color=chosen[system])
            axes.fill_between(MULTIPLES, low, high, color=chosen[system], alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(MULTIPLES, [f"{k}×" for k in MULTIPLES])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("multiple of the time alone")
    axes.set_ylabel("requests that took longer, %")
    _add_legend(axes)
    return _svg(figure)


def jitter_chart(over: Summaries) -> str:
    """The standard deviation of each model's latencies (SPLIT, Fig. 7), over runs."""
    names = list(dict.fromkeys(name for run in over.values() for name in run["requests"]))
    jitter, above = {}, {}
    for system, run in over.items():
        found = [run["requests"].get(name, {}).get("jitter_ms") for name in names]
        jitter[system] = np.array([each["mean"] if each else 0.0 for each in found])
        highs = [each["high"] if each and each["high"] is not None else 0.0 for each in found]
        above[system] = np.maximum(np.array(highs) - jitter[system], 0)
    figure, axes = _figure(4.2, 0.6 * len(over) * len(names))
    _draw_groups(axes, names, jitter, shades([*over]), above)
    axes.set_ylabel("jitter, ms")
    return _svg(figure)


def over_time_chart(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], label: str
) -> str:
    """Values over seconds, a line for each name; ``label`` says what they are."""
    figure, axes = _figure(3.2, 9.5)
    chosen = colours(lines)
    for name, (seconds, values) in lines.items():
        axes.plot(seconds, values, label=name, color=chosen[name], linewidth=1.2)
    axes.set_xlabel("s since the app was warm")
    axes.set_ylabel(label)
    _add_legend(axes)
    return _svg(figure)


def overhead_chart(timelines: Mapping[str, Timeline]) -> str | None:
    """What cutting and coordinating cost each DNN on the GPU (Fig. 15); None without chunks."""
    cut = {system: each.overhead for system, each in timelines.items() if each.overhead}
    if not cut:
        return None
    names = list(dict.fromkeys(name for overhead in cut.values() for name in overhead))
    percent = {
        system: np.array([100 * overhead.get(name, 0.0) for name in names])
        for system, overhead in cut.items()
    }
    figure, axes = _figure(3.4, 0.6 * len(cut) * len(names))
    _draw_groups(axes, names, percent, shades([*timelines]))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylabel("chunks against the whole\nnetwork on the GPU, %")
    return _svg(figure)


def coordination_chart(timeline: Timeline) -> str | None:
    """Utility over time, and what had which processor (Figs. 16 and 17), for a few seconds from
    the middle of the run; None for a run without utilities."""
    if not timeline.utility:
        return None
    end_ms = max((span.start_ms + span.ms for span in timeline.spans), default=0.0)
    left = max(0.0, (end_ms - EXCERPT_MS) / 2)
    right = left + EXCERPT_MS
    figure = Figure(figsize=(11, 4.6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1.4))
    chosen = colours(timeline.utility)
    _draw_utility(above, timeline, chosen, left, right)
    _draw_occupancy(below, timeline, chosen, left, right)
    below.set_xlim(left, right)
    below.set_xlabel("ms since the recording began")
    return _svg(figure)


def _draw_utility(
    axes: Axes, timeline: Timeline, chosen: Mapping[str, str], left: float, right: float
) -> None:
    lowest = 0.0
    for name, points in timeline.utility.items():
        seen = np.array([point for point in points if left <= point[0] <= right]).reshape(-1, 2)
        axes.plot(*seen.T, label=name, color=chosen[name])
        lowest = min([lowest, *seen[np.isfinite(seen[:, 1]), 1]])
    axes.axhline(0, color=OTHER, linewidth=0.8)  # the latency constraint is reached here
    axes.set_ylabel("utility (fresh = 1)")
    axes.set_ylim(max(lowest, _LEAST_UTILITY) - 0.05, 1.05)
    _add_legend(axes)


def _draw_occupancy(
    axes: Axes, timeline: Timeline, chosen: Mapping[str, str], left: float, right: float
) -> None:
    workers = [lane for lane in timeline.lanes if lane.partition("-")[0] == Lane.CPU]
    others = [lane for lane in timeline.further if lane not in workers]
    lanes = [
        *others,
        *workers,
        *(str(each) for each in (Lane.GPU, Lane.RENDER) if each in timeline.lanes),
    ]
    drawn: defaultdict[tuple[int, str], list[Span]] = defaultdict(list)
    for span in timeline.spans:
        if span.lane in lanes and span.start_ms < right and span.start_ms + span.ms > left:
            drawn[lanes.index(span.lane), chosen.get(span.name, OTHER)].append(span)
    for (row, colour), spans in drawn.items():
        pieces = [(span.start_ms, span.ms) for span in spans]
        axes.broken_barh(pieces, (row + 0.1, 0.8), color=colour, linewidth=0)
    names = {str(Lane.RENDER): "rendering"}
    axes.set_yticks(
        [row + 0.5 for row in range(len(lanes))],
        [names.get(lane, lane.upper()) for lane in lanes],
    )


def _draw_groups(
    axes: Axes,
    names: Sequence[str],
    heights: Mapping[str, np.ndarray],
    shade: Mapping[str, str],
    above: Mapping[str, np.ndarray] | None = None,
) -> None:
    """A group of bars for each name: one a system, with a line as long as ``above`` says."""
    width = 0.8 / max(len(heights), 1)
    at = np.arange(len(names))
    for index, (system, height) in enumerate(heights.items()):
        offset = (index - (len(heights) - 1) / 2) * width
        error = None if above is None else [np.zeros_like(height), above[system]]
        axes.bar(
            at + offset, height, width, yerr=error, capsize=2, label=system, color=shade[system]
        )
    axes.set_xticks(at, names)
    _add_legend(axes)


def _add_legend(axes: Axes) -> None:
    """Above the picture, where it hides nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0
        )


def _figure(height: float, width: float) -> tuple[Figure, Axes]:
    """``height`` and, within limits, ``width`` of what is drawn, in inches."""
    figure = Figure(figsize=(min(11.0, 1.5 + max(1.5, width)), height))
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure: Figure) -> str:
    """The picture as an element for a page: its text stays text."""
    figure.tight_layout()
    target = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "heimdall"}):
        figure.savefig(target, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = target.getvalue()
    return text[text.index("<svg") :]
