"""Runs of the laboratory as tables for people: many of one system, systems side by side, points of
a sweep; of several runs there are means, with half the 95% interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from heimdall.cli.cells import NONE, achieved, facts, mean, number, say, table
from heimdall.cli.run_tables import (
    A_SECOND,
    ACCURACY,
    DROPPED,
    FPS,
    JITTER,
    MAX,
    MEAN,
    MISSED,
    P99,
    PREEMPTED,
    ROUNDS,
    TIMES,
    VIOLATED,
    Columns,
    Figures,
    Output,
    answered,
    answers,
    busy,
    exits_taken,
    loops,
    mean_of,
    networks,
    rate,
    simulated,
    who_decided,
    windows,
    with_exits,
)
from heimdall.runtime.telemetry.statistics import over_runs

MEANS = "means, and half the 95% interval of each"


def _not_useful(over: Figures) -> str:
    """The part of the GPU's time that rendering and each network alone would not have taken."""
    busy, useful = (over.get("gpu", {}).get(key) for key in ("busy_ms", "useful_ms"))
    known = busy and useful and busy["mean"]
    return f"{100 * (1 - useful['mean'] / busy['mean']):.1f}%" if known else NONE


def _longest_of_all(dnn: Figures) -> str:
    longest = dnn.get("latency_ms", {}).get("max")
    return number(longest and longest["most"])


_OVER_4X = VIOLATED[1][1]


_OVER_SLO = VIOLATED[-1][1]


# Of systems side by side, what a line says of one that draws.
_OF_FRAMES: Columns = (
    *((">fps", FPS), (">windows of 1/3 s", windows)),
    (">interval p99 ms", mean_of("frame_interval_ms", "p99")),
    (">picture old ms", mean_of("picture_age_ms", "p50")),
    (">late %", mean_of("late_rate", scale=100)),
    (">gaps used %", mean_of("gap_utilization", digits=0, scale=100)),
    (">by policy %", mean_of("chosen", "by_policy", digits=0, scale=100)),
    *(
        (">GPU busy s", mean_of("gpu", "busy_ms", scale=1e-3)),
        (">CPU core s", mean_of("cpu_core_s")),
    ),
    *((">GPU not useful", _not_useful), (">power W", mean_of("power_w"))),
)


# ... and the lines of each DNN, and of each model that is asked for.
_DNN_FIGURES: Columns = (
    *(("mean ms", MEAN), ("p99 ms", P99), ("longest ms", MAX), ("missed %", MISSED)),
    *(("utility", mean_of("utility", digits=2)), ("a second", achieved)),
)


_MODEL_FIGURES: Columns = (
    *(("mean ms", MEAN), ("p99 ms", P99), ("jitter ms", JITTER)),
    *(("over 4x %", _OVER_4X), ("over SLO %", _OVER_SLO), ("dropped", DROPPED)),
)


# XRBench's.
_SCORES: Columns = (
    (">score", mean_of("score", "overall")),
    (">real time", mean_of("score", "real_time", digits=3)),
    (">QoE", mean_of("score", "qoe", digits=3)),
)


_EXIT_FIGURES: Columns = (
    ("accuracy %", ACCURACY),
    ("exits", exits_taken),
    ("preempted", PREEMPTED),
)


_DNN_OF_MANY: Columns = (
    *(*A_SECOND, *TIMES, (">longest", MAX), (">of all runs", _longest_of_all)),
    *((">missed %", MISSED), (">GPU", mean_of("gpu")), (">CPU", mean_of("cpu"))),
)


def seeds_report(result: Figures) -> Output:
    """One simulation with many chances: means, and half the 95% interval of each."""
    over, seeds, first = result["over_runs"], result["seeds"], result["runs"][0]
    draws = "fps" in first
    extent = f" of {first['seconds']:.0f} s" if draws else ""
    said = [
        *simulated(result, first),
        ("runs", f"{len(seeds)}{extent}, seeds {seeds[0]} to {seeds[-1]}: {MEANS}"),
        *(_frames_of_many(over, first) if draws else ()),
        *answers(over),
    ]
    return [facts(said), *networks(over, _DNN_OF_MANY)]


def _frames_of_many(over: Figures, first: Figures) -> list[tuple[str, str]]:
    interval, late = over.get("frame_interval_ms", {}), mean(over.get("late_rate"), 2, 100)
    said = [
        ("frames", f"{rate(over, first)}, {late}% late"),
        ("interval", f"{mean(interval.get('p50'), 2)} ms p50, {mean(interval.get('p99'), 2)} p99"),
    ]
    if "gap_utilization" in over:
        said.append(("gaps", f"{mean(over['gap_utilization'], 1, 100)}% used"))
    return said


def compared(result: Figures) -> Output:
    """Systems side by side, live or simulated: a line each, then each DNN's and each model's
    figures with a column a system, then what failed."""
    systems, machine = result["systems"], result.get("machine")
    over = result.get("over_runs") or {name: over_runs([run]) for name, run in systems.items()}
    where = [f"{machine['processor']}, {machine['cores']} cores"] if machine else []
    if device := next((run["device"] for run in systems.values()), None):
        where.append(f"{device['gpu']}, {device['mode']}")
    parts: Output = [f"{result['title']} on {'; '.join(where)}" if where else result["title"]]
    if (runs := max(map(len, result.get("runs", {}).values()), default=1)) > 1:
        kind = "seeds" if result.get("simulated") else "runs in turns"
        parts.append(f"{runs} {kind}: {MEANS}")
    parts += _loads(systems)
    if drawing := {name: each for name, each in over.items() if "fps_target" in each}:
        parts += ["", _systems(drawing, _OF_FRAMES)]
    if inferring := {name: each for name, each in over.items() if "dnns" in each}:
        parts += ["", _by_name(inferring, "dnns", "DNN", _DNN_FIGURES)]
        words = [who_decided(each, name) for name, each in inferring.items()]
        parts += ["", *filter(None, words)] if any(words) else []
    if asked := {name: each for name, each in over.items() if "requests" in each}:
        exits = with_exits(asked.values())
        figures = (*_MODEL_FIGURES, *(_EXIT_FIGURES if exits else ()))
        parts += ["", _systems(asked, _of_requests(asked, exits))]
        parts += ["", _by_name(asked, "requests", "model", figures)]
    failures = [f"failed: {failure}" for failure in result["failures"]]
    errors = [f"{name}: {e}" for name, run in systems.items() for e in run.get("errors", ())]
    return parts + (["", *failures, *errors] if failures or errors else [])


def _of_requests(over: Figures, exits: bool) -> Columns:
    """What a line says of a system that is asked."""
    names = dict.fromkeys(loop for each in over.values() for loop in loops(each))
    rounds = [
        (f">{loop} rounds a second", lambda each, loop=loop: ROUNDS(loops(each).get(loop, {})))
        for loop in names
    ]
    accuracy = [(">accuracy %", ACCURACY)] if exits else []
    return [
        (">answered a second", answered),
        *rounds,
        *VIOLATED,
        *accuracy,
        *_SCORES,
        ("processors busy", busy),
    ]


def _systems(over: Figures, columns: Columns) -> Table:
    """A line a system; figures that no system has are left out."""
    cells_of = {name: [cell(each) for each in over.values()] for name, cell in columns}
    found = {name: values for name, values in cells_of.items() if set(values) != {NONE}}
    rows = [[name, *values] for name, *values in zip(over, *found.values(), strict=True)]
    return table(None, ["system", *found], rows)


def _by_name(over: Figures, key: str, kind: str, figures: Columns) -> Table:
    """A line for each figure of each model or DNN, with a column a system."""
    names = dict.fromkeys(name for each in over.values() for name in each[key])
    rows = [
        [f"{name} {what}", *(cell(each[key][name]) for each in over.values())]
        for name in names
        for what, cell in figures
    ]
    return table(None, [kind, *(f">{name}" for name in over)], rows)


def _loads(systems: Figures) -> list[str]:
    """The input sizes that were found, a line each: the same for every system."""
    found = {name: load for run in systems.values() for name, load in run.get("loads", {}).items()}
    return [
        f"{name}: {load['alone_ms']:.1f} ms alone at {load['size'][0]}x{load['size'][1]}"
        f" ({load['wanted_ms']:g} were asked for)"
        for name, load in found.items()
    ]


def sweep_report(result: Figures) -> Output:
    """A line a point: what was varied, then frames, then each DNN."""
    points = result["points"]
    varied = list(dict.fromkeys(name for point in points for name in point["values"]))
    dnns = list(dict.fromkeys(dnn for point in points for dnn in point["over_runs"]["dnns"]))
    columns = [*varied, "system", ">fps", ">late %"]
    for dnn in dnns:
        columns += [f">{dnn} ms", ">missed %", ">a second"]
    rows = [_point_row(point, varied, dnns) for point in points]
    parts: Output = [
        f"{result['title']}: {result['done']} of {result['runs']} runs of {result['seconds']:g} s, "
        f"{len(result['seeds'])} seeds a point; {MEANS}"
    ]
    if rows:
        parts += ["", table(None, columns, rows)]
    parts += ["", f"kept in {result['output']}"]
    if result["interrupted"]:
        parts.append("interrupted: the same command goes on where it ended")
    return parts


def _point_row(point: Figures, varied: Sequence[str], dnns: Iterable[str]) -> list[object]:
    over = point["over_runs"]
    row: list[object] = [say(point["values"].get(name, NONE)) for name in varied]
    row += [point["system"], FPS(over), mean(over.get("late_rate"), 2, 100)]
    for name in dnns:
        dnn = over["dnns"].get(name, {})
        row += [MEAN(dnn), MISSED(dnn), mean(dnn.get("achieved_hz"), 2)]
    return row
