"""Heimdall against stronger baselines, in one table: what each costs the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.paper.runs import STRONG, SYSTEMS
from benchmarks.paper.values import look_up, shown, text
from benchmarks.performance_page import table

if TYPE_CHECKING:
    from benchmarks.paper.findings import Findings

Results = Mapping[str, Any]
ORDER = ("multithread", "fixed-5", *STRONG, *SYSTEMS[2:])
DNNS = {"style": "StyleTransfer", "hand": "PoseNet", "segment": "DeepLab-v3", "detect": "YOLO-v2"}
SWITCHES = (1, 2.5)  # ms: what the phone takes to change between contexts is 2 to 3 (section 4.1.1)
SWITCHED = "priorities"  # needs a GPU that switches between contexts of unequal priority


def section(findings: Findings, picture: str) -> str:
    """The section of the page."""
    live = findings.live
    described = ""
    if live is not None and any(look_up(live, f"runs/shopping {name}") for name in ORDER):
        lines = "\n".join(_table([(name, _run(live, name)) for name in ORDER]))
        described = f"Live, {live['turns']} runs:\n\n{lines}\n"
    return text("baselines").format(
        picture=picture,
        seeds=findings.simulated["seeds"],
        simulated="\n".join(_table(simulated_rows(findings))),
        live=described,
        names=",".join(name for name in ORDER if name != SYSTEMS[-1]),
    )


def simulated_rows(findings: Findings) -> list[tuple[str, Results | None]]:
    """(name, what all seeds showed) in the order of the table."""
    rows = []
    for name in ORDER:
        rows.append((name, _run(findings.simulated, name)))
        if name == SWITCHED:
            rows += [
                (f"{name}, switch {value:g} ms", _run(results, name))
                for value, results in findings.sensitivity.get("switch_ms", [])
                if value in SWITCHES
            ]
    return rows


def _run(results: Results, system: str) -> Results | None:
    found: Results | None = look_up(results, f"runs/shopping {system}")
    return found


def _table(rows: Sequence[tuple[str, Results | None]]) -> list[str]:
    columns = ["", "fps", "lowest third", "late", *DNNS.values(), "missed"]
    required = next((run for _, run in rows if run), None)
    asked = {name: look_up(required, f"dnns/{name}/required_hz/mean") for name in DNNS}
    return table(columns, [[name, *_cells(run, asked)] for name, run in rows if run])


def _cells(run: Results, asked: Mapping[str, float | None]) -> list[str]:
    cells = [shown(look_up(run, f"fps/{part}"), "") for part in ("mean", "min")]
    cells.append(_percent(look_up(run, "late_rate/mean")))
    cells += [_dnn(look_up(run, f"dnns/{name}"), asked[name]) for name in DNNS]
    missed = {name: look_up(run, f"dnns/{name}/miss_rate/mean") for name in DNNS}
    cells.append(", ".join(f"{name} {_percent(part)}" for name, part in missed.items() if part))
    return cells


def _dnn(found: Results | None, asked: float | None) -> str:
    mean, longest = (look_up(found, f"latency_ms/{part}/mean") for part in ("mean", "max"))
    if mean is None:
        return "never"
    rate = look_up(found, "achieved_hz/mean")
    wanted = f" of {asked:g}" if asked else ""
    return f"{mean:.0f} / {longest:.0f}, {rate:.2f}{wanted} Hz"


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.0f}%" if part >= 0.1 else f"{100 * part:.1f}%"
