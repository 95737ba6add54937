"""One self-contained page about a comparison: charts, figures, machine, and a timeline to zoom."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from heimdall.errors import ConfigError
from heimdall.lab.bench import charts
from heimdall.lab.bench.systems import System
from heimdall.lab.bench.timeline import Span, Timeline, read_timeline
from heimdall.runtime.telemetry.jobs import MULTIPLES, SLO
from heimdall.runtime.telemetry.statistics import over_runs
from heimdall.system.paths import replace_file

TIMELINE_MS = 10_000.0  # of each system, from the middle of its run: what a browser draws at once
_TEMPLATE = Path(__file__).with_name("report.html")


def write_report(
    path: Path, result: Mapping[str, Any], timelines: Mapping[str, Timeline], command: str
) -> None:
    """Write the page of what ``compare`` or ``compare_simulated`` returned; ``timelines`` may lack
    some systems, and the machine may be None where the systems' device says it all. Figures of
    requests are means over runs, all else is of the first ones.

    Raises ConfigError when the file cannot be written.
    """
    systems = result["systems"]
    drawing = {name: run for name, run in systems.items() if "fps" in run}
    asked = {name: run for name, run in systems.items() if "violations" in run}
    over = {
        name: result.get("over_runs", {}).get(name) or over_runs([asked[name]]) for name in asked
    }
    dnns = dict.fromkeys(name for run in drawing.values() for name in run["dnns"])
    models = dict.fromkeys(name for run in asked.values() for name in run["requests"])
    ordered = {name: timelines[name] for name in systems if name in timelines}
    coordination = {
        system: picture
        for system, timeline in ordered.items()
        if (picture := charts.coordination_chart(timeline))
    }
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page.filters["fixed"] = _fixed
    page.filters["mean"] = _mean
    text = page.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        result=result,
        systems=systems,
        drawing=drawing,
        dnns=dnns,
        models=models,
        over=over,
        rounds=any("frames" in run for run in over.values()),
        exits=any(each.get("exits") for run in over.values() for each in run["requests"].values()),
        multiples=[*map(str, MULTIPLES), SLO],
        loads={
            name: load for run in systems.values() for name, load in run.get("loads", {}).items()
        },
        colours=charts.colours([*dnns, *models]),
        device=next((run["device"] for run in systems.values()), None),
        command=command,
        fps=charts.fps_chart(drawing) if drawing else "",
        latency=charts.latency_chart(drawing) if drawing else "",
        violation=charts.violation_chart(over) if over else "",
        jitter=charts.jitter_chart(over) if over else "",
        request_latency=charts.latency_chart(asked, "requests") if asked else "",
        overhead=charts.overhead_chart(ordered),
        coordination=coordination,
        script_colours=_script_safe(charts.colours([*dnns, *models])),
        timelines=_script_safe({name: _excerpt(each) for name, each in ordered.items()}),
    )
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise ConfigError(f"cannot write report {path}: {error.strerror or error}") from error


def write_comparison(
    path: Path,
    result: Mapping[str, Any],
    systems: Sequence[System],
    traces: Mapping[str, Path],
    command: str,
) -> None:
    """``write_report`` of these systems with the timelines of their first runs, as far as there are
    ``traces`` of them, by name."""
    timelines = {
        system.name: read_timeline(traces[system.name], system.own_policy)
        for system in systems
        if system.name in result["systems"]
        and system.name in traces
        and traces[system.name].exists()
    }
    write_report(path, result, timelines, command)


def write_simulation(
    path: Path, summary: Mapping[str, Any], trace: Path, command: str, policy: str | None = None
) -> None:
    """The page of one simulated run, from its summary and its trace; ``policy``: see
    ``read_timeline``.

    Raises ConfigError when the file cannot be written.
    """
    system, title = summary["system"], f"{summary['scenario']}, {summary['device']['mode']}"
    result: dict[str, Any] = {"title": title, "systems": {system: summary}}
    result |= {"machine": None, "failures": []}
    write_report(path, result, {system: read_timeline(trace, policy)}, command)


def _excerpt(timeline: Timeline) -> dict[str, Any]:
    """Lanes, names and [lane, name, start ms, ms, reason] of each span, by index."""
    end_ms = max((span.start_ms + span.ms for span in timeline.spans), default=0.0)
    left = max(0.0, (end_ms - TIMELINE_MS) / 2)
    right = left + TIMELINE_MS
    spans = [s for s in timeline.spans if s.start_ms < right and s.start_ms + s.ms > left]
    lanes = timeline.lanes
    names = list(dict.fromkeys(_owner(span.name) for span in spans))
    return {
        "lanes": lanes,
        "names": names,
        "spans": [
            [
                lanes.index(span.lane),
                names.index(_owner(span.name)),
                round(span.start_ms, 3),
                round(span.ms, 3),
                _words(span),
            ]
            for span in spans
        ],
    }


def _words(span: Span) -> str:
    """``style, ops 12-40, until hand is back from the CPU``."""
    return ", ".join(filter(None, (span.name, span.ops and f"ops {span.ops}", span.reason)))


def _owner(name: str) -> str:
    """``style`` of "style fallback", ``frame`` of "frame 12"."""
    return name.partition(" ")[0]


def _fixed(value: float | None, digits: int = 1) -> str:
    """A figure for a table; a dash for one that could not be taken."""
    return "–" if value is None else f"{value:.{digits}f}"


def _mean(found: Mapping[str, Any] | None, digits: int = 1, scale: float = 1) -> str:
    """Of a figure over runs the mean, with half its 95% interval where there are several."""
    if not found:
        return "–"
    said = f"{scale * found['mean']:.{digits}f}"
    if found["high"] is None:
        return said
    return f"{said} ± {scale * (found['high'] - found['mean']):.{digits}f}"


def _script_safe(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
