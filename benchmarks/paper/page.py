"""docs/laboratory/paper.md from what was found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.paper import contest, sensitivity, sweep
from benchmarks.paper.findings import Findings, Results
from benchmarks.paper.runs import LONGER
from benchmarks.paper.values import Figure, Headline, Paper, look_up, seen, shown, text
from benchmarks.performance_page import table

_LIVE = (
    "{machine}; GPU: {gpu}, {mode}; pictures by {renderer}. {turns} runs, systems in turns, of "
    "{seconds:g} s each ({longer:g} s for section 9.2). {stand}{loads}The other scenarios run as "
    "the apps do, and are light."
)
_LOADS = (
    "For the shopping scenario inputs are as large as it takes to load the GPU as a phone's "
    "(`heimdall/lab/scenarios/shopping-phone.toml`): {found}. "
)
_NOT_LIVE = "not run yet (`python -m benchmarks.paper --live`)."
_STALE = (
    "\n**{stale} of the runs shown are of an earlier version of the sources**; the command below "
    "renews them.\n"
)


def page(paper: Paper, findings: Findings, pictures: Mapping[str, str]) -> str:
    """The whole page; ``pictures`` are paths from it, by name."""
    simulated, live = findings.simulated, findings.live
    parts = [
        text("intro").format(
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
    parts += [_sweep(findings, pictures), text("threats"), text("commands")]
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
        loads=_loads(live.get("loads", {})),
        stand=f"Other networks stand for the paper's: {', '.join(stand)}. " if stand else "",
    )
    described += f" Failed: {'; '.join(failed)}." if failed else ""
    return "\n  ".join(textwrap.wrap(described, 96, break_on_hyphens=False))


def _loads(loads: Results) -> str:
    found = [
        f"{name} {each['alone_ms']:g} ms alone at {'x'.join(map(str, each['size'][::-1]))}"
        for name, each in loads.items()
    ]
    return _LOADS.format(found=", ".join(found)) if found else ""


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
    return text("headlines").format(table="\n".join(table(columns, rows)), why=said)


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
    return text("ranges").format(
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
    return text("past").format(
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
