"""The picture of sensitivity: a row a headline's quantity, a column an assumption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.paper.sensitivity import Parameter, Value, parameters
from benchmarks.paper.values import look_up
from heimdall.analyzer.plot import COLOURS, OTHER

Tried = Mapping[str, Sequence[tuple[Value, Mapping[str, Any]]]]
_COLOUR = {
    "multithread": COLOURS[1],
    "priorities": COLOURS[3],
    "max-total-static": COLOURS[2],
    "max-total": COLOURS[0],
}
# Of each row: its label, its path below a system's run, and the paper's value for a line across.
_ROWS = (
    ("fps", "fps/mean", 11.99),
    ("late frames", "late_rate", None),
    ("style, ms", "dnns/style/latency_ms/mean", 109),
    ("style's longest, ms", "dnns/style/latency_ms/max", 139),
    ("style missed", "dnns/style/miss_rate", None),
    ("PoseNet, ms", "dnns/hand/latency_ms/mean", 409),
    ("DeepLab, ms", "dnns/segment/latency_ms/mean", 919),
)
_LOGARITHMIC = "dnns/style/latency_ms"


def draw(tried: Tried) -> Figure | None:
    """Means over seeds of each system; dashes: the paper's."""
    shown = [each for each in parameters() if tried.get(each.name)]
    if not shown:
        return None
    figure = Figure(figsize=(1.45 * len(shown) + 0.6, 1.25 * len(_ROWS) + 0.8))
    grid = figure.subplots(len(_ROWS), len(shown), sharey="row", sharex="col", squeeze=False)
    for row, (label, path, paper) in enumerate(_ROWS):
        for column, parameter in enumerate(shown):
            axes = grid[row][column]
            _draw_panel(axes, parameter, tried[parameter.name], path, paper)
            if not column:
                axes.set_ylabel(label, fontsize=7)
            if row == len(_ROWS) - 1:
                axes.set_xlabel(parameter.title, fontsize=7)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, frameon=False, fontsize=8, ncols=4, loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )  # fmt: skip
    return figure


def _draw_panel(
    axes: Axes,
    parameter: Parameter,
    tried: Sequence[tuple[Value, Mapping[str, Any]]],
    path: str,
    paper: float | None,
) -> None:
    for system, colour in _COLOUR.items():
        known = [
            (value, found["mean"])
            for value, results in tried
            if (found := look_up(results, f"runs/shopping {system}/{path}")) is not None
        ]
        if known:
            axes.plot(
                [value for value, _ in known],
                [mean for _, mean in known],
                marker=".",
                markersize=3,
                linewidth=1,
                color=colour,
                label=system,
            )
    if paper is not None:
        axes.axhline(paper, color=OTHER, linestyle="--", linewidth=0.7)
    if path.startswith(_LOGARITHMIC):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    if not isinstance(parameter.usual, str):
        axes.axvline(parameter.usual, color=OTHER, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=5)
    if isinstance(parameter.usual, str):
        axes.tick_params(axis="x", rotation=90)
