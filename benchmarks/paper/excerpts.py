"""Figs. 16 and 17: utility over time, and who had which processor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heimdall.analyzer.plot import COLOURS, OTHER
from heimdall.vocabulary.enums import Lane

_NAMES = {"detect": "YOLO-v2", "segment": "DeepLab-v3", "hand": "PoseNet"}
_LANES = {str(Lane.RENDER): "rendering", str(Lane.GPU): "GPU", str(Lane.CPU): "CPU"}
_LEAST_UTILITY = -0.5  # lower ones are cut off: a fresh result is worth 1


def draw(results: Mapping[str, Any], runs: Mapping[str, str]) -> Figure | None:
    """The first seconds of one seed of each run, by title; None without them."""
    shown = {
        title: excerpt
        for title, run in runs.items()
        if (excerpt := results.get("excerpts", {}).get(run))
    }
    if not shown:
        return None
    figure = Figure(figsize=(10, 3.2 * len(shown)))
    rows = figure.subplots(2 * len(shown), 1, height_ratios=(2, 1) * len(shown), squeeze=False)
    for index, (title, excerpt) in enumerate(shown.items()):
        above, below = rows[2 * index][0], rows[2 * index + 1][0]
        _draw_utility(above, excerpt["utility"])
        above.set_title(title, fontsize=9, loc="right")
        _draw_lanes(below, excerpt["spans"])
        end_ms = max(start + took for _, _, start, took in excerpt["spans"])
        for axes in (above, below):
            axes.set_xlim(0, end_ms)
            axes.spines[["top", "right"]].set_visible(False)
        above.set_xticklabels([])
    rows[-1][0].set_xlabel("ms of virtual time")
    return figure


def _draw_utility(axes: Axes, utility: Mapping[str, Any]) -> None:
    for index, (name, said) in enumerate(_NAMES.items()):
        points = [(ms, float("nan") if value is None else value) for ms, value in utility[name]]
        axes.plot(
            [ms for ms, _ in points],
            [value for _, value in points],
            color=COLOURS[index],
            linewidth=1,
            label=said,
        )
    axes.set_ylim(_LEAST_UTILITY, 1.05)
    axes.set_ylabel("utility (fresh = 1)", fontsize=8)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))


def _draw_lanes(axes: Axes, spans: Any) -> None:
    colours = {name: COLOURS[index] for index, name in enumerate(_NAMES)}
    pieces: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for lane, name, start_ms, took_ms in spans:
        own = pieces[lane, colours.get(name.partition(" ")[0], OTHER)]
        if own and start_ms - sum(own[-1]) < 0.5:  # one piece to the eye: a smaller file
            own[-1] = (own[-1][0], start_ms + took_ms - own[-1][0])
        else:
            own.append((start_ms, took_ms))
    rows = [lane for lane in _LANES if any(key[0] == lane for key in pieces)][::-1]
    for (lane, colour), own in pieces.items():
        axes.broken_barh(own, (rows.index(lane) + 0.1, 0.8), color=colour, linewidth=0)
    axes.set_yticks(
        [row + 0.5 for row in range(len(rows))], [_LANES[lane] for lane in rows], fontsize=8
    )
