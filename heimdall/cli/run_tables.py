"""Runs as tables for people: one, many of one system, systems side by side, points of a sweep.

A run has the figures of frames and of an app's networks, of requests to models, or of both, and
each is shown where it is there. Of several runs there are means, with half the 95% interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from heimdall.bench.statistics import over_runs
from heimdall.cli.cells import NONE, achieved, extremes, facts, mean, number, percent, say, table
from heimdall.runtime.telemetry.jobs import MULTIPLES, SLO

Figures = Mapping[str, Any]
Cell = Callable[[Figures], str]
Columns = Sequence[tuple[str, Cell]]
Parts = list[Table | str]
_MEANS = "means, and half the 95% interval of each"


def _mean(*path: str, digits: int = 1, scale: float = 1) -> Cell:
    """The cell of a figure over runs, found by its keys."""

    def cell(over: Figures) -> str:
        found: Any = over
        for key in path:
            found = (found or {}).get(key)
        return mean(found, digits, scale)

    return cell


def _exits(figures: Figures) -> str:
    """How often each exit was taken."""
    exits = figures.get("exits", {})
    return ", ".join(f"{name} {each['mean']:.0f}" for name, each in exits.items())


def _busy(over: Figures) -> str:
    busy = {name: each.get("busy") for name, each in over.get("processors", {}).items()}
    return ", ".join(f"{name} {mean(each, 0, 100)}%" for name, each in busy.items())


def _not_useful(over: Figures) -> str:
    """The part of the GPU's time that rendering and each network alone would not have taken."""
    busy, useful = (over.get("gpu", {}).get(key) for key in ("busy_ms", "useful_ms"))
    known = busy and useful and busy["mean"]
    return f"{100 * (1 - useful['mean'] / busy['mean']):.1f}%" if known else NONE


def _windows(over: Figures) -> str:
    fps = over.get("fps", {})
    return extremes(fps.get("min"), fps.get("max"))


def _missed(dnn: Figures) -> str:
    return percent(dnn["miss_rate"]["mean"] if "miss_rate" in dnn else None)


def _longest_of_all(dnn: Figures) -> str:
    longest = dnn.get("latency_ms", {}).get("max")
    return number(longest and longest["most"])


_MEAN, _P99, _MAX = (_mean("latency_ms", key) for key in ("mean", "p99", "max"))
_DROPPED, _PREEMPTED = (_mean(key, digits=0) for key in ("dropped", "preempted"))
_MISSED, _ACCURACY = (_mean(key, scale=100) for key in ("miss_rate", "accuracy"))
_FPS, _ROUNDS = _mean("fps", "mean", digits=2), _mean("fps", digits=2)
_JITTER = _mean("jitter_ms")
_VIOLATED: Columns = [
    (f">over {name} %", _mean("violations", key, scale=100))
    for key, name in [*((str(each), f"{each}x") for each in MULTIPLES), (SLO, "SLO")]
]
_OVER_4X, _OVER_SLO = _VIOLATED[1][1], _VIOLATED[-1][1]

_TIMES: Columns = ((">mean ms", _MEAN), (">p99", _P99))
_A_SECOND: Columns = ((">a second", achieved),)
_EXITS: Columns = (("exits", _exits), (">preempted", _PREEMPTED))

# Of systems side by side, what a line says of one that draws.
_OF_FRAMES: Columns = (
    *((">fps", _FPS), (">windows of 1/3 s", _windows)),
    (">interval p99 ms", _mean("frame_interval_ms", "p99")),
    (">picture old ms", _mean("picture_age_ms", "p50")),
    (">late %", _mean("late_rate", scale=100)),
    (">gaps used %", _mean("gap_utilization", digits=0, scale=100)),
    *((">GPU busy s", _mean("gpu", "busy_ms", scale=1e-3)), (">CPU core s", _mean("cpu_core_s"))),
    *((">GPU not useful", _not_useful), (">power W", _mean("power_w"))),
)
# ... and the lines of each DNN, and of each model that is asked for.
_DNN_FIGURES: Columns = (
    *(("mean ms", _MEAN), ("p99 ms", _P99), ("longest ms", _MAX), ("missed %", _MISSED)),
    *(("utility", _mean("utility", digits=2)), ("a second", achieved)),
)
_MODEL_FIGURES: Columns = (
    *(("mean ms", _MEAN), ("p99 ms", _P99), ("jitter ms", _JITTER)),
    *(("over 4x %", _OVER_4X), ("over SLO %", _OVER_SLO), ("dropped", _DROPPED)),
)
_EXIT_FIGURES: Columns = (("accuracy %", _ACCURACY), ("exits", _exits), ("preempted", _PREEMPTED))
# What a line says of a DNN after one run, and after many; and of a model that is asked for.
_DNN_OF_ONE: Columns = (
    *((">inferences", _mean("inferences", digits=0)), *_A_SECOND, *_TIMES),
    (">end to end", _mean("end_to_end_ms", "mean")),
    *((">GPU", _mean("gpu", digits=0)), (">CPU", _mean("cpu", digits=0))),
    (">chunks", lambda dnn: str(dnn["chunks"]["mean"] or 0)),
    (">fallback ops", _mean("fallback_ops", digits=0)),
    *((">missed", _mean("deadline_misses", digits=0)), (">%", _missed)),
)
_DNN_OF_MANY: Columns = (
    *(*_A_SECOND, *_TIMES, (">longest", _MAX), (">of all runs", _longest_of_all)),
    *((">missed %", _MISSED), (">GPU", _mean("gpu")), (">CPU", _mean("cpu"))),
)
_MODEL: Columns = (
    *((">alone ms", _mean("lone_ms")), (">asked", _mean("submitted", digits=0))),
    *((">dropped", _DROPPED), (">mean ms", _MEAN), (">p50", _mean("latency_ms", "p50"))),
    *((">p99", _P99), (">longest", _MAX), (">jitter ms", _JITTER)),
)


# --- one run, or many of one system -------------------------------------------------------------


def run_summary(run: Figures) -> Parts:
    """What one run did: frames and a line a DNN, requests and a line a model, then errors."""
    over = over_runs([run])
    said = _frames_of_one(run) if "fps" in run else _simulated(run, run)
    parts: Parts = [facts([*said, *_answers(over)]), *_networks(over, _DNN_OF_ONE)]
    if run.get("windows"):
        parts += ["", _over_time(run["windows"])]
    errors = [f"error: {error}" for error in run.get("errors", ())]
    return parts + (["", *errors] if errors else [])


def seeds_report(result: Figures) -> Parts:
    """One simulation with many chances: means, and half the 95% interval of each."""
    over, seeds, first = result["over_runs"], result["seeds"], result["runs"][0]
    draws = "fps" in first
    extent = f" of {first['seconds']:.0f} s" if draws else ""
    said = [
        *_simulated(result, first),
        ("runs", f"{len(seeds)}{extent}, seeds {seeds[0]} to {seeds[-1]}: {_MEANS}"),
        *(_frames_of_many(over, first) if draws else ()),
        *_answers(over),
    ]
    return [facts(said), *_networks(over, _DNN_OF_MANY)]


def _simulated(result: Figures, run: Figures) -> list[tuple[str, str]]:
    device, varied = run["device"], result.get("variations") or {}
    where = device["mode"].removeprefix("simulated ")
    if "fps" in run:
        where = f"{device['gpu']} ({device['mode']})"
    said = [("simulated", f"{result['scenario']} on {where}"), ("system", result["system"])]
    values = ", ".join(f"{name} {say(value)}" for name, value in varied.items())
    return [*said, ("with", values)] if values else said


def _frames_of_one(run: Figures) -> list[tuple[str, str]]:
    interval, render = run["frame_interval_ms"], run["render_ms"]
    device, age = run["device"], run["picture_age_ms"]
    said = [
        ("app", f"{run['app']} on {run['source']}"),
        ("GPU", f"{device['gpu']} ({device.get('mode', 'hardware')})"),
        ("scheduler", f"{run['scheduler']}, {run.get('mode', 'elastic')}"),
        (
            "frames",
            f"{run['frames']} in {run['seconds']:.1f} s: {_rate(over_runs([run]), run)},"
            f" {run['late_frames']} late ({percent(run['late_rate'], 1)})",
        ),
        (
            "interval",
            f"{number(interval['p50'], 2)} ms p50, {number(interval['p99'], 2)} ms p99,"
            f" {number(interval['max'], 2)} ms longest",
        ),
        ("rendering", f"{number(render['p50'], 2)} ms p50, {number(render['p99'], 2)} ms p99"),
    ]
    if age["p50"] is not None:
        old = f"{number(age['p50'])} ms old p50, {number(age['p99'])} ms p99, when shown"
        said.append(("picture", old))
    if world := run.get("world"):
        seen = f"tracked in {percent(world['tracked'])} of frames, lost {world['lost']} times"
        said.append(("world", f"{seen}; a pose takes {number(world['pose_ms']['p50'])} ms p50"))
    if run["gap_utilization"] is not None:
        said.append(("gaps", f"{percent(run['gap_utilization'])} used while work was waiting"))
    if run.get("simulated"):
        return [*said, ("simulated", f"{run['times_real_time']:.0f} times faster than real time")]
    decision, memory = run["decision_us"], run["memory_mb"]
    used = f"{number(memory['end'], 0)} MB at the end, {number(memory['peak'], 0)} MB at most"
    decided = f"{number(decision['p50'])} us p50, {number(decision['p99'])} us p99"
    return [*said, ("decisions", decided), ("memory", used)]


def _rate(over: Figures, first: Figures) -> str:
    return f"{_FPS(over)} fps of {first['fps_target']:g} (windows of 1/3 s: {_windows(over)})"


def _frames_of_many(over: Figures, first: Figures) -> list[tuple[str, str]]:
    interval, late = over.get("frame_interval_ms", {}), mean(over.get("late_rate"), 2, 100)
    said = [
        ("frames", f"{_rate(over, first)}, {late}% late"),
        ("interval", f"{mean(interval.get('p50'), 2)} ms p50, {mean(interval.get('p99'), 2)} p99"),
    ]
    if "gap_utilization" in over:
        said.append(("gaps", f"{mean(over['gap_utilization'], 1, 100)}% used"))
    return said


def _answers(over: Figures) -> list[tuple[str, str]]:
    """What is to say of all requests."""
    if "requests" not in over:
        return []
    return [
        ("answered", f"{_answered(over)} requests a second"),
        *(("rounds", f"{name}: {_rounds(loop)}") for name, loop in _loops(over).items()),
        ("processors", _busy(over)),
    ]


def _loops(over: Figures) -> Figures:
    """The rounds of closed loops; ``frames`` of a run that draws are those that it has drawn."""
    found: Figures = {} if "fps_target" in over else over.get("frames", {})
    return found


def _answered(over: Figures) -> str:
    """Requests a second; of a run that draws, ``throughput_hz`` has its inferences, too."""
    if "fps_target" not in over:
        return mean(over.get("throughput_hz"), 2)
    answered = sum(model["finished"]["mean"] for model in over["requests"].values())
    return f"{answered / over['seconds']['mean']:.2f}"


def _rounds(loop: Figures) -> str:
    return f"{_ROUNDS(loop)} a second, {_MEAN(loop)} ms each ({_P99(loop)} p99)"


def _networks(over: Figures, of_dnn: Columns) -> Parts:
    """A line a DNN; a line a model that is asked for, and one for all of these."""
    parts: Parts = []
    if dnns := over.get("dnns"):
        rows = [[name, *(cell(dnn) for _, cell in of_dnn)] for name, dnn in dnns.items()]
        parts += ["", table(None, ["DNN", *(name for name, _ in of_dnn)], rows)]
    if models := over.get("requests"):
        exits = _with_exits([over])
        totals = [*_VIOLATED, *([(">accuracy %", _ACCURACY)] if exits else [])]
        more = _EXITS if exits else ()
        columns = [*_MODEL, *totals, *more]
        rows = [[name, *(cell(model) for _, cell in columns)] for name, model in models.items()]
        rows.append(["all", *[""] * len(_MODEL), *(cell(over) for _, cell in totals)])
        rows[-1] += [""] * len(more)
        parts += ["", table(None, ["model", *(name for name, _ in columns)], rows)]
    return parts


def _over_time(windows: Figures) -> Table:
    """How a run on a machine that changes went on: mean latency and misses of each DNN."""
    columns = ["window", ">fps", ">late"]
    columns += [f">{name}" for name in next(iter(windows.values()))["dnns"]]
    rows = []
    for name, window in windows.items():
        row = [name, number(window["fps"], 1), f"{100 * window['late_rate']:.0f}%"]
        for dnn in window["dnns"].values():
            row.append(f"{number(dnn['latency_ms'], 0)} ms, {100 * dnn['miss_rate']:.0f}% missed")
        rows.append(row)
    return table(None, columns, rows)


# --- systems side by side -----------------------------------------------------------------------


def compared(result: Figures) -> Parts:
    """Systems side by side, live or simulated: a line each, then each DNN's and each model's
    figures with a column a system, then what failed."""
    systems, machine = result["systems"], result.get("machine")
    over = result.get("over_runs") or {name: over_runs([run]) for name, run in systems.items()}
    where = [f"{machine['processor']}, {machine['cores']} cores"] if machine else []
    if device := next((run["device"] for run in systems.values()), None):
        where.append(f"{device['gpu']}, {device['mode']}")
    parts: Parts = [f"{result['title']} on {'; '.join(where)}" if where else result["title"]]
    if (runs := max(map(len, result.get("runs", {}).values()), default=1)) > 1:
        kind = "seeds" if result.get("simulated") else "runs in turns"
        parts.append(f"{runs} {kind}: {_MEANS}")
    parts += _loads(systems)
    if drawing := {name: each for name, each in over.items() if "dnns" in each}:
        parts += ["", _systems(drawing, _OF_FRAMES)]
        parts += ["", _by_name(drawing, "dnns", "DNN", _DNN_FIGURES)]
    if asked := {name: each for name, each in over.items() if "requests" in each}:
        exits = _with_exits(asked.values())
        figures = (*_MODEL_FIGURES, *(_EXIT_FIGURES if exits else ()))
        parts += ["", _systems(asked, _of_requests(asked, exits))]
        parts += ["", _by_name(asked, "requests", "model", figures)]
    failures = [f"failed: {failure}" for failure in result["failures"]]
    errors = [f"{name}: {e}" for name, run in systems.items() for e in run.get("errors", ())]
    return parts + (["", *failures, *errors] if failures or errors else [])


def _of_requests(over: Figures, exits: bool) -> Columns:
    """What a line says of a system that is asked."""
    loops = dict.fromkeys(loop for each in over.values() for loop in _loops(each))
    rounds = [
        (f">{loop} rounds a second", lambda each, loop=loop: _ROUNDS(_loops(each).get(loop, {})))
        for loop in loops
    ]
    accuracy = [(">accuracy %", _ACCURACY)] if exits else []
    return [
        (">answered a second", _answered),
        *rounds,
        *_VIOLATED,
        *accuracy,
        ("processors busy", _busy),
    ]


def _systems(over: Figures, columns: Columns) -> Table:
    """A line a system; figures that nobody has are left out."""
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


def _with_exits(over: Iterable[Figures]) -> bool:
    """Whether any model has early exits."""
    models = [model for each in over for model in each.get("requests", {}).values()]
    return any(model.get("accuracy") for model in models)


def _loads(systems: Figures) -> list[str]:
    """The input sizes that were found, a line each: the same for every system."""
    found = {name: load for run in systems.values() for name, load in run.get("loads", {}).items()}
    return [
        f"{name}: {load['alone_ms']:.1f} ms alone at {load['size'][0]}x{load['size'][1]}"
        f" ({load['wanted_ms']:g} were asked for)"
        for name, load in found.items()
    ]


# --- sweeps -------------------------------------------------------------------------------------


def sweep_report(result: Figures) -> Parts:
    """A line a point: what was varied, then frames, then each DNN."""
    points = result["points"]
    varied = list(dict.fromkeys(name for point in points for name in point["values"]))
    dnns = list(dict.fromkeys(dnn for point in points for dnn in point["over_runs"]["dnns"]))
    columns = [*varied, "system", ">fps", ">late %"]
    for dnn in dnns:
        columns += [f">{dnn} ms", ">missed %", ">a second"]
    rows = [_point_row(point, varied, dnns) for point in points]
    parts: Parts = [
        f"{result['title']}: {result['done']} of {result['runs']} runs of {result['seconds']:g} s, "
        f"{len(result['seeds'])} seeds a point; {_MEANS}"
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
    row += [point["system"], _FPS(over), mean(over.get("late_rate"), 2, 100)]
    for name in dnns:
        dnn = over["dnns"].get(name, {})
        row += [_MEAN(dnn), _MISSED(dnn), mean(dnn.get("achieved_hz"), 2)]
    return row
