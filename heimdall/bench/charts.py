"""The charts of the Heimdall paper (Figs. 14-17) as SVG, from what a comparison measured."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heimdall.analyzer.plot import COLOURS, OTHER
from heimdall.bench.timeline import Timeline

Summaries = Mapping[str, Mapping[str, Any]]
EXCERPT_MS = 3000.0  # of utility and occupancy: as much as a reader can tell apart


def colours(names: list[str]) -> dict[str, str]:
    """A colour for each DNN, the same in every chart."""
    return {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}


def fps_chart(systems: Summaries) -> str:
    """Mean frame rate, with the lowest and highest third of a second (Fig. 14a)."""
    figure, axes = _figure(4.2, len(systems))
    mean, low, high = (
        np.array([run["fps"][key] or 0.0 for run in systems.values()])
        for key in ("mean", "min", "max")
    )
    error = np.maximum([mean - low, high - mean], 0)
    axes.bar(list(systems), mean, yerr=error, capsize=4, color=COLOURS[0], width=0.6)
    for index, value in enumerate(mean):
        axes.text(index, 0.4, f"{value:.2f}", ha="center", color="white")
    target = max((run["fps_target"] for run in systems.values()), default=0)
    axes.axhline(target, color=OTHER, linestyle="--", linewidth=1)
    axes.set_ylabel("frames per second")
    return _svg(figure)


def latency_chart(systems: Summaries) -> str:
    """Mean and longest latency of each DNN under each system (Fig. 14b)."""
    names = list(dict.fromkeys(dnn for run in systems.values() for dnn in run["dnns"]))
    figure, axes = _figure(4.2, len(systems) * len(names) / 2)
    width = 0.8 / max(len(systems), 1)
    at = np.arange(len(names))
    for index, (system, run) in enumerate(systems.items()):
        latency = [run["dnns"][name]["latency_ms"] for name in names]
        mean = np.array([each["mean"] or 0.0 for each in latency])
        longest = np.array([each["max"] or 0.0 for each in latency])
        error = np.maximum([np.zeros_like(mean), longest - mean], 0)
        offset = (index - (len(systems) - 1) / 2) * width
        colour = COLOURS[index % len(COLOURS)]
        axes.bar(at + offset, mean, width, yerr=error, capsize=2, label=system, color=colour)
    axes.set_xticks(at, names)
    axes.set_ylabel("latency, ms (mean; line: longest)")
    axes.legend(frameon=False)
    return _svg(figure)


def overhead_chart(timelines: Mapping[str, Timeline]) -> str | None:
    """What cutting and coordinating cost each DNN on the GPU (Fig. 15); None without chunks."""
    cut = {system: each.overhead for system, each in timelines.items() if each.overhead}
    if not cut:
        return None
    names = list(dict.fromkeys(name for overhead in cut.values() for name in overhead))
    figure, axes = _figure(3.4, len(cut) * len(names) / 2)
    width = 0.8 / len(cut)
    at = np.arange(len(names))
    for index, (system, overhead) in enumerate(cut.items()):
        offset = (index - (len(cut) - 1) / 2) * width
        percent = [100 * overhead.get(name, 0.0) for name in names]
        axes.bar(at + offset, percent, width, label=system, color=COLOURS[index % len(COLOURS)])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(at, names)
    axes.set_ylabel("chunks against the whole\nnetwork on the GPU, %")
    axes.legend(frameon=False)
    return _svg(figure)


def coordination_chart(timeline: Timeline) -> str | None:
    """Utility over time, and who had which processor (Figs. 16 and 17), for a few seconds from
    the middle of the run; None for a run without utilities."""
    if not timeline.utility:
        return None
    end_ms = max((span.start_ms + span.ms for span in timeline.spans), default=0.0)
    left = max(0.0, (end_ms - EXCERPT_MS) / 2)
    right = left + EXCERPT_MS
    figure = Figure(figsize=(11, 4.6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1.4))
    chosen = colours(list(timeline.utility))
    for name, points in timeline.utility.items():
        seen = [(ms, value) for ms, value in points if left <= ms <= right]
        if seen:
            above.step(*zip(*seen, strict=True), where="post", label=name, color=chosen[name])
    above.axhline(0, color=OTHER, linewidth=0.8)  # the latency constraint is reached here
    above.set_ylabel("utility (fresh = 1)")
    above.set_ylim(-1.5, 1.05)
    above.legend(frameon=False, ncols=4)
    _draw_occupancy(below, timeline, chosen, left, right)
    below.set_xlim(left, right)
    below.set_xlabel("ms")
    return _svg(figure)


def _draw_occupancy(
    axes: Axes, timeline: Timeline, chosen: Mapping[str, str], left: float, right: float
) -> None:
    lanes = [lane for lane in ("cpu", "gpu", "render") if lane in timeline.lanes]
    for row, lane in enumerate(lanes):
        for span in timeline.spans:
            if span.lane == lane and left <= span.start_ms <= right:
                colour = chosen.get(span.name, OTHER)
                axes.broken_barh([(span.start_ms, span.ms)], (row + 0.1, 0.8), color=colour)
    axes.set_yticks([row + 0.5 for row in range(len(lanes))], [lane.upper() for lane in lanes])


def _figure(height: float, items: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(min(11.0, 3.5 + 1.3 * items), height))
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure: Figure) -> str:
    """The picture as an element for a page: its text stays text."""
    figure.tight_layout()
    target = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "heimdall"}):
        figure.savefig(target, format="svg", metadata={"Date": None})
    text = target.getvalue()
    return text[text.index("<svg") :]
