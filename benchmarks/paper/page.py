"""docs/paper.md from results."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.paper.runs import LONGER
from benchmarks.paper.sweep import RATES, SIZES, SYSTEMS, held
from benchmarks.paper.values import Figure, look_up, shown
from benchmarks.performance_page import table

Results = Mapping[str, Any]

_INTRO = """# The Heimdall paper, number by number

Written by `python -m benchmarks.paper`; change `benchmarks/paper/values.toml`, not this page.

Every number that sections 3, 5, 7 and 9 of the paper measure (MobiCom '20), beside the same from a
simulation of its phones (`heimdall simulate`) and from this program, live. Where the paper only
draws a figure, and its text gives no number, it says *chart*.

- **Simulated**: {device}, {simulated_s:g} s of virtual time a run.
  `profiles/lg-v50.toml` and `pixel-3-xl.toml` say of each of their figures whether the paper gives
  it, how it follows, or that it is assumed; one is fitted, to Fig. 2(a). Where a row only repeats
  what a profile was made of, the text below it says *given* or *derived*.
- **Live**: {live}

In figures of frame rates, brackets hold the lowest and the highest third of a second. *Heimdall* is
`max-total`: elastic chunks. The paper's own way to cut, one chunk of a static partition a gap, is
`max-total-static`.
"""
_LIVE = (
    "{machine}; GPU: {gpu}, {mode}; pictures by {renderer}. {seconds:g} s a run ({longer:g} s for "
    "section 9.2). {stand}For the shopping scenario they are fed such large pictures that their "
    "load is like a phone's (`apps/shopping-phone.toml`); the other scenarios run as the apps do, "
    "and are light."
)
_NOT_LIVE = "not run yet (`python -m benchmarks.paper --live`)."
_SWEEP = """## Past the paper: rates, sizes, numbers of DNNs

Section 10.2 leaves more DNNs and more complex rendering to future work. Simulated on the LG V50:
the networks of Table 2 one after the other, each back to back and wanted once a second;
{seconds:g} s a point, {points} points. Rendering grows with its pixels (2.7 ms at 1080p, so 4.8 ms
at 1440p, of 16.7 at 60 fps). The band is between the lowest and the highest third of a second.
*Latency / alone* is the geometric mean over the DNNs of their mean latency over Table 2's.
Coordination keeps the frame rate; the GPU time of the frames that the baseline does not draw is
what the DNNs lack for it, most of all where 60 large pictures a second are drawn.

![Frame rate and latency against the number of DNNs]({chart})

The most DNNs beside which the mean frame rate stays within 1% of the target:

{table}

With all eight, and the part of inferences that took longer than their second:

{missed}
"""


def page(
    figures: Sequence[Figure],
    simulated: Results,
    live: Results | None,
    sweep: Mapping[str, Any],
    chart: str,
) -> str:
    """The whole page; ``chart`` is the path of the sweep's picture from it."""
    described = _describe(live) if live else _NOT_LIVE
    parts = [
        _INTRO.format(device=simulated["device"], simulated_s=simulated["seconds"], live=described)
    ]
    parts += [_figure(figure, simulated, live) for figure in figures]
    parts.append(_sweep(sweep, chart))
    return "\n".join(parts)


def _describe(live: Results) -> str:
    machine, device = live["machine"], live["device"] or {}
    stand = [f"{each['model']} for {name}" for name, each in live["networks"].items()]
    failed = [f"{name} ({why})" for name, why in live.get("failures", {}).items()]
    described = _LIVE.format(
        machine=f"{machine['processor']}, {machine['cores']} cores, {machine['memory_mb']} MB",
        gpu=device.get("gpu"),
        mode=device.get("mode"),
        renderer=device.get("renderer"),
        seconds=live["seconds"],
        longer=LONGER * live["seconds"],
        stand=f"Other networks stand for the paper's: {', '.join(stand)}. " if stand else "",
    )
    described += f" Failed: {'; '.join(failed)}." if failed else ""
    return "\n  ".join(textwrap.wrap(described, 96, break_on_hyphens=False))


def _figure(figure: Figure, simulated: Results, live: Results | None) -> str:
    rows = [
        [
            row.what,
            "chart" if row.paper is None else shown(row.paper, row.unit),
            shown(look_up(simulated, row.at), row.unit),
            shown(look_up(live, row.live_at or row.at), row.unit),
        ]
        for row in figure.rows
    ]
    lines = [f"## {figure.name}: {figure.title} (section {figure.section})", ""]
    lines += [*table(["", "paper", "simulated", "live"], rows), ""]
    lines += [figure.note, ""]
    if figure.not_simulated:
        lines += [f"Not simulated: {figure.not_simulated}", ""]
    if figure.not_here:
        lines += [f"Not live: {figure.not_here}", ""]
    return "\n".join(lines)


def _sweep(sweep: Mapping[str, Any], chart: str) -> str:
    points = sweep["points"]
    columns = ["", *(f"{fps} fps, {size[1]}p" for fps in RATES for size in SIZES)]
    counts, missed = [], []
    for system in SYSTEMS:
        pairs = [(fps, size) for fps in RATES for size in SIZES]
        counts.append([system, *(str(held(points, *pair, system)) for pair in pairs)])
        missed.append([system, *(_last(points, *pair, system) for pair in pairs)])
    return _SWEEP.format(
        seconds=sweep["seconds"],
        points=len(points),
        chart=chart,
        table="\n".join(table(columns, counts)),
        missed="\n".join(table(columns, missed)),
    )


def _last(points: Sequence[Results], fps: int, size: tuple[int, int], system: str) -> str:
    """Frame rate and missed deadlines with most DNNs."""
    found = [
        point
        for point in points
        if (point["fps"], tuple(point["size"]), point["system"]) == (fps, size, system)
    ]
    most = max(found, key=lambda point: point["dnns"])
    never = f", never {', '.join(most['never'])}" if most["never"] else ""
    return f"{most['rate']['mean']:.1f} fps, {100 * most['missed']:.0f}% late{never}"
