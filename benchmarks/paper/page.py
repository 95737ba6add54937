"""docs/paper.md from what was found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper import contest, sensitivity, sweep
from benchmarks.paper.runs import LONGER
from benchmarks.paper.values import Figure, Headline, Paper, look_up, seen, shown
from benchmarks.performance_page import table

Results = Mapping[str, Any]
THREATS = Path(__file__).with_name("threats.md")


@dataclass(frozen=True)
class Findings:
    """Everything that the page shows. ``live`` is None before anything ran on this machine;
    ``stale`` counts results that other sources than the present ones made."""

    simulated: Results
    live: Results | None
    sensitivity: Mapping[str, Sequence[tuple[sensitivity.Value, Results]]]
    sweep: Sequence[Results]
    stale: int = 0
    sweep_seconds: float = 10.0


_INTRO = """# The Heimdall paper, number by number

Written by `python -m benchmarks.paper`; change `benchmarks/paper/values.toml` and `threats.md`, not this
page.

Every number that sections 3 to 7, 9 and 10 of the paper state (MobiCom '20), beside the same from a
simulation of its phones (`heimdall simulate`) and from this program, live. First its headlines, how
far each of them holds, and what they cost against stronger baselines; then figure by figure; at the
end what speaks against all of it.

- **Simulated**: {device}, {seeds} seeds, {simulated_s:g} s of virtual time each.
  `profiles/lg-v50.toml` and `pixel-3-xl.toml` say of each of their figures whether the paper gives
  it, how it follows, or that it is assumed. Where a row only repeats what a profile was made of,
  the text below it says *given* or *derived*.
- **Live**: {live}

A number is the mean over seeds, or over live runs, and brackets hold the 95% interval of that mean
(Student's t); without brackets, all agreed. *Seeds* and *runs* are the least and the most that a single
one showed. A dash in the paper's column is a number that it does not have, *chart* one that it only
draws. *Static* is the paper's own mode (`max-total-static`), *elastic* what this program does by default
(`max-total`).
"""
_LIVE = (
    "{machine}; GPU: {gpu}, {mode}; pictures by {renderer}. {turns} runs, systems in turns, of "
    "{seconds:g} s each ({longer:g} s for section 9.2). {stand}For the shopping scenario their "
    "inputs are so large that their load is like a phone's (`apps/shopping-phone.toml`); the other "
    "scenarios run as the apps do, and are light."
)
_NOT_LIVE = "not run yet (`python -m benchmarks.paper --live`)."
_STALE = (
    "\n**{stale} of the runs shown are of an earlier version of the sources**; the command below "
    "renews them.\n"
)
_HEADLINES = """## Headlines

The verdict is of the simulation: *reproduced*, when the interval of the mean lies within the bounds (15%
around the paper's number, or a limit); *partly*, when that is so of single seeds only; otherwise *not*.
The live column has other hardware and other networks, and is no reproduction of a phone's times.

{table}

{why}
"""
_RANGES = """## How far the headlines hold

The simulated phone with one assumption changed at a time, the others as in its profile, {seeds} seeds a
point. A cell has the values that were tried at which the headline still holds (the mean over seeds,
within the same bounds): *all* of them, or *none*; a dash: it plays no part. Below a name: what was
tried, and in brackets the usual value.

{table}

{picture}

*Moving scene* feeds the luminance of a clip in `assets/media` to Eq. 4; *places of CPU ops* puts fallback
ops at random places of a network (0: evenly); *spread of ops* is the sigma of op latencies. Again:
`python -m benchmarks.paper --only sensitivity`, or one point with
`heimdall simulate shopping --sweep FILE.toml`.
"""
_SWEEP = """## Past the paper: rates, sizes, numbers of DNNs

Section 10.2 expects that "60 fps, 2160p" can be had similarly, and leaves it and more DNNs to future work.
Simulated on the LG V50: the networks of Table 2 one after the other, each back to back and wanted
once a second; {seconds:g} s a point and seed, {points} points. Rendering grows with its pixels
(2.7 ms at 1080p, so 10.8 ms at 2160p, of 16.7 at 60 fps). The band is between the lowest and the
highest third of a second of all seeds. *Latency / alone* is the geometric mean over the DNNs of their
mean latency over Table 2's. Coordination keeps the frame rate; the GPU time of the frames that the
baseline does not draw is what the DNNs lack for it, most of all where 60 large pictures a second are
drawn.

{picture}

The most DNNs beside which the mean frame rate stays within 1% of the target:

{table}

With all eight, and the part of inferences that took longer than their second:

{missed}

Again: `python -m benchmarks.paper --only sweep`.
"""
_COMMANDS = """## All of it again

```
python -m benchmarks.paper                 # all simulations, in parallel processes
python -m benchmarks.paper --live          # and everything on this machine: nothing else should run
python -m benchmarks.paper --only "Fig. 4" # one figure's simulated runs (with --live: also live)
python -m benchmarks.paper --page-only     # the page of what there is
```

Under an hour on two cores. Results are kept in `out/paper`, one JSON object a line, as soon as they
are there, and made again only when the sources, the scenario or the profile that made them have
changed: an interrupted command goes on where it was. `--seeds`, `--runs`, `--seconds` and
`--simulated-seconds` make it longer or shorter.
"""


def page(paper: Paper, findings: Findings, pictures: Mapping[str, str]) -> str:
    """The whole page; ``pictures`` are paths from it, by name."""
    simulated, live = findings.simulated, findings.live
    parts = [
        _INTRO.format(
            device=simulated["device"],
            seeds=simulated["seeds"],
            simulated_s=simulated["seconds"],
            live=_describe(live) if live else _NOT_LIVE,
        )
    ]
    if findings.stale:
        parts.append(_STALE.format(stale=findings.stale))
    parts += [_headlines(paper.headline, findings), _ranges(paper.headline, findings, pictures)]
    parts.append(contest.section(findings, _image("baselines", pictures)))
    parts += [_figure(figure, findings, pictures) for figure in paper.figure]
    parts += [_sweep(findings, pictures), THREATS.read_text(encoding="utf-8"), _COMMANDS]
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
        turns=live["turns"],
        seconds=live["seconds"],
        longer=LONGER * live["seconds"],
        stand=f"Other networks stand for the paper's: {', '.join(stand)}. " if stand else "",
    )
    described += f" Failed: {'; '.join(failed)}." if failed else ""
    return "\n  ".join(textwrap.wrap(described, 96, break_on_hyphens=False))


def _headlines(headlines: Sequence[Headline], findings: Findings) -> str:
    rows, why = [], []
    for each in headlines:
        found = look_up(findings.simulated, each.at)
        verdict = each.verdict(found)
        rows.append(
            [
                each.claim,
                shown(each.paper, each.unit),
                shown(found, each.unit),
                seen(found, each.unit),
                shown(look_up(findings.live, each.live_at or each.at), each.unit),
                verdict,
                f"`{each.command}`",
            ]
        )
        if verdict in ("partly", "not"):
            why.append(f"- *{each.claim}*: {verdict}: {' '.join(each.why.split())}.")
    columns = ["", "paper", "simulated", "seeds", "live", "verdict", "command"]
    said = "Why not, or not by every seed:\n\n" + "\n".join(why) if why else ""
    return _HEADLINES.format(table="\n".join(table(columns, rows)), why=said)


def _ranges(headlines: Sequence[Headline], findings: Findings, pictures: Mapping[str, str]) -> str:
    parameters = sensitivity.parameters()
    columns = ["", *(f"{each.title}: {each.tried} ({each.said_usual})" for each in parameters)]
    rows = []
    for headline in headlines:
        cells = []
        for parameter in parameters:
            tried = findings.sensitivity.get(parameter.name, [])
            cells.append(sensitivity.in_words(sensitivity.holding(headline, tried)))
        rows.append([headline.claim, *cells])
    return _RANGES.format(
        seeds=findings.simulated["seeds"],
        table="\n".join(table(columns, rows)),
        picture=_image("sensitivity", pictures),
    )


def _figure(figure: Figure, findings: Findings, pictures: Mapping[str, str]) -> str:
    columns = ["", "paper", "simulated", "seeds", "live", "runs"]
    rows = list(_rows(figure, findings))
    lines = [f"## {figure.name}: {figure.title} (section {figure.section})", ""]
    if figure.picture:
        lines += [_image(figure.picture, pictures), ""]
    lines += [*table(columns, rows), "", figure.note.strip(), ""]
    if figure.not_simulated:
        lines += [f"Not simulated: {figure.not_simulated}", ""]
    if figure.not_here:
        lines += [f"Not live: {figure.not_here}", ""]
    commands = list(figure.commands)
    if figure.runs():
        commands.append(f'python -m benchmarks.paper --only "{figure.name}"')
    if commands:
        lines += [f"Again: {', '.join(f'`{command}`' for command in commands)}.", ""]
    return "\n".join(lines)


def _rows(figure: Figure, findings: Findings) -> Iterator[list[str]]:
    for row in figure.rows:
        for line in row.lines():
            simulated = look_up(findings.simulated, line.at)
            live = look_up(findings.live, line.live_at)
            yield [
                line.what,
                "chart" if line.paper is None else shown(line.paper, row.unit),
                shown(simulated, row.unit),
                seen(simulated, row.unit),
                shown(live, row.unit),
                seen(live, row.unit),
            ]


def _image(name: str, pictures: Mapping[str, str]) -> str:
    return f"![{name}]({pictures[name]})" if name in pictures else ""


def _sweep(findings: Findings, pictures: Mapping[str, str]) -> str:
    points = findings.sweep
    if not points:
        return ""
    pairs = [(fps, size) for fps in sweep.RATES for size in sweep.SIZES]
    columns = ["", *(f"{fps} fps, {size[1]}p" for fps, size in pairs)]
    counts, missed = [], []
    for system in sweep.SYSTEMS:
        counts.append([system, *(str(sweep.held(points, *pair, system)) for pair in pairs)])
        missed.append([system, *(_last(points, *pair, system) for pair in pairs)])
    return _SWEEP.format(
        seconds=findings.sweep_seconds,
        points=len(points),
        picture=_image("sweep", pictures),
        table="\n".join(table(columns, counts)),
        missed="\n".join(table(columns, missed)),
    )


def _last(points: Sequence[Results], fps: int, size: tuple[int, int], system: str) -> str:
    """Frame rate and missed deadlines with most DNNs."""
    most = max(sweep.series(points, fps, size, system), key=lambda point: point["dnns"])
    never = f", never {', '.join(most['never'])}" if most["never"] else ""
    rate, missed = most["rate"]["mean"]["mean"], most["missed"]["mean"]
    return f"{rate:.1f} fps, {100 * missed:.0f}% late{never}"
