"""A picture of a partition: ops stacked into chunks, against the gap they must fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heimdall.analyzer.partition import Chunk
from heimdall.analyzer.profile import NetworkProfile
from heimdall.errors import ConfigError

KINDS = 7  # coloured by name; the rest share a grey
# Okabe and Ito's colours: told apart by colour-blind readers, too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
OTHER = "#999999"
_CUT = "#444444"  # what a chunk itself costs


def plot_partition(
    profile: NetworkProfile,
    chunks: Sequence[Chunk],
    gap_ms: float,
    path: str | Path,
    *,
    margin_ms: float = 0.0,
) -> None:
    """Write a PNG (or any format matplotlib knows, by suffix): one bar a chunk, its ops stacked
    in order and coloured by kind, fallback ones hatched, with the gap as a line.

    ``margin_ms`` adds the relaxed limit of section 5.3. Raises ConfigError if the file cannot
    be written.
    """
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    figure = Figure(figsize=(max(6.4, min(16.0, 3.2 + 0.55 * len(chunks))), 4.8), dpi=120)
    axes = figure.add_subplot()
    colours = _colours(profile)
    for index, chunk in enumerate(chunks):
        _draw_bar(axes, index, chunk, profile, colours)
    axes.axhline(gap_ms, color="black", linewidth=1.4, label=f"gap {gap_ms:.1f} ms")
    if margin_ms:
        limit = gap_ms + margin_ms
        axes.axhline(limit, color="black", linestyle="--", label=f"with margin {limit:.1f} ms")
    _label(axes, profile, chunks, colours)
    figure.tight_layout()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write the plot {path}: {error}") from error


def _colours(profile: NetworkProfile) -> dict[str, str]:
    """A colour for each of the kinds that take most time."""
    total: defaultdict[str, int] = defaultdict(int)
    for op in profile.ops:
        total[op.kind] += op.ns
    ranked = sorted(total, key=lambda kind: -total[kind])
    return dict(zip(ranked, COLOURS[:KINDS], strict=False))


def _draw_bar(
    axes: Any, index: int, chunk: Chunk, profile: NetworkProfile, colours: dict[str, str]
) -> None:
    bottom = 0.0
    plan = profile.plan
    for op in range(chunk.start, chunk.end):
        height = plan.op_ns[op] / 1e6
        axes.bar(
            index,
            height,
            bottom=bottom,
            width=0.72,
            color=colours.get(profile.ops[op].kind, OTHER),
            hatch="///" if plan.fallback[op] else None,
            edgecolor="white",
            linewidth=0.4,
        )
        bottom += height
    if not chunk.fallback:
        cost = chunk.ns / 1e6 - bottom
        axes.bar(index, cost, bottom=bottom, width=0.72, color=_CUT)
        bottom += cost
    paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
    axes.annotate(
        f"{bottom:.1f}",
        (index, bottom),
        (0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        bbox=paper,
    )


def _label(
    axes: Any, profile: NetworkProfile, chunks: Sequence[Chunk], colours: dict[str, str]
) -> None:
    from matplotlib.patches import Patch

    handles, _ = axes.get_legend_handles_labels()
    handles += [Patch(color=colour, label=kind) for kind, colour in colours.items()]
    if any(op.kind not in colours for op in profile.ops):
        handles.append(Patch(color=OTHER, label="other kinds"))
    if profile.chunk_cost_ns:
        handles.append(Patch(color=_CUT, label="cost of a chunk"))
    if any(chunk.fallback_ops for chunk in chunks):
        handles.append(Patch(facecolor="white", edgecolor="grey", hatch="///", label="on the CPU"))
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
    step = -(-len(chunks) // 24)
    shown = range(0, len(chunks), step)
    axes.set_xticks(list(shown))
    axes.set_xticklabels([_name(chunks[index]) for index in shown], fontsize=8, rotation=45)
    axes.margins(y=0.12)
    axes.set_xlabel("chunk (ops)")
    axes.set_ylabel("ms")
    on_gpu = sum(not chunk.fallback for chunk in chunks)
    axes.set_title(
        f"{profile.model}: {len(profile.ops)} ops, {on_gpu} GPU chunk{'s' if on_gpu != 1 else ''}"
        f"\n{profile.key.device}",
        fontsize=10,
    )
    axes.spines[["top", "right"]].set_visible(False)


def _name(chunk: Chunk) -> str:
    last = chunk.end - 1
    return f"{chunk.start}" if chunk.start == last else f"{chunk.start}–{last}"
