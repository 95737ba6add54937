"""A run as tables for people.

A run has the figures of frames and of an app's networks, of requests to models, or of both, and
each is shown where it is there. Of several runs there are means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from heimdall.cli.cells import achieved, extremes, facts, mean, number, percent, say, table
from heimdall.runtime.telemetry.jobs import MULTIPLES, SLO
from heimdall.runtime.telemetry.statistics import over_runs

Figures = Mapping[str, Any]
Cell = Callable[[Figures], str]
Columns = Sequence[tuple[str, Cell]]
Output = list[Table | str]


def mean_of(*path: str, digits: int = 1, scale: float = 1) -> Cell:
    """The cell of a figure over runs, found by its keys."""

    def cell(over: Figures) -> str:
        found: Any = over
        for key in path:
            found = (found or {}).get(key)
        return mean(found, digits, scale)

    return cell


def exits_taken(figures: Figures) -> str:
    """How often each exit was taken."""
    exits = figures.get("exits", {})
    return ", ".join(f"{name} {each['mean']:.0f}" for name, each in exits.items())


def busy(over: Figures) -> str:
    busy = {name: each.get("busy") for name, each in over.get("processors", {}).items()}
    return ", ".join(f"{name} {mean(each, 0, 100)}%" for name, each in busy.items())


def windows(over: Figures) -> str:
    fps = over.get("fps", {})
    return extremes(fps.get("min"), fps.get("max"))


def _missed(dnn: Figures) -> str:
    return percent(dnn["miss_rate"]["mean"] if "miss_rate" in dnn else None)


_HARDLY_ANY = 0.05  # of all chunks

MEAN, P99, MAX = (mean_of("latency_ms", key) for key in ("mean", "p99", "max"))
JITTER = mean_of("jitter_ms")
DROPPED, PREEMPTED = (mean_of(key, digits=0) for key in ("dropped", "preempted"))
MISSED, ACCURACY = (mean_of(key, scale=100) for key in ("miss_rate", "accuracy"))
FPS, ROUNDS = mean_of("fps", "mean", digits=2), mean_of("fps", digits=2)
VIOLATED: Columns = [
    (f">over {name} %", mean_of("violations", key, scale=100))
    for key, name in [*((str(each), f"{each}x") for each in MULTIPLES), (SLO, "SLO")]
]

TIMES: Columns = ((">mean ms", MEAN), (">p99", P99))
A_SECOND: Columns = ((">a second", achieved),)
_EXITS: Columns = (("exits", exits_taken), (">preempted", PREEMPTED))

# What a line says of a DNN after one run, and after many; and of a model that is asked for.
_DNN_OF_ONE: Columns = (
    *((">inferences", mean_of("inferences", digits=0)), *A_SECOND, *TIMES),
    (">end to end", mean_of("end_to_end_ms", "mean")),
    *((">GPU", mean_of("gpu", digits=0)), (">CPU", mean_of("cpu", digits=0))),
    (">chunks", lambda dnn: str(dnn["chunks"]["mean"] or 0)),
    (">fallback ops", mean_of("fallback_ops", digits=0)),
    *((">missed", mean_of("deadline_misses", digits=0)), (">%", _missed)),
)
_MODEL: Columns = (
    *((">alone ms", mean_of("lone_ms")), (">asked", mean_of("submitted", digits=0))),
    *((">dropped", DROPPED), (">mean ms", MEAN), (">p50", mean_of("latency_ms", "p50"))),
    *((">p99", P99), (">longest", MAX), (">jitter ms", JITTER)),
)


def run_summary(run: Figures) -> Output:
    """What one run did: frames and a line a DNN, requests and a line a model, then errors."""
    over = over_runs([run])
    said = _frames_of_one(run) if "fps" in run else simulated(run, run)
    parts: Output = [facts([*said, *answers(over)]), *networks(over, _DNN_OF_ONE)]
    if run.get("windows"):
        parts += ["", _over_time(run["windows"])]
    errors = [f"error: {error}" for error in run.get("errors", ())]
    errors += [f"given up: {', '.join(run['given_up'])}"] if run.get("given_up") else []
    return parts + (["", *errors] if errors else [])


def simulated(result: Figures, run: Figures) -> list[tuple[str, str]]:
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
            f"{run['frames']} in {run['seconds']:.1f} s: {rate(over_runs([run]), run)},"
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
    if words := who_decided(over_runs([run]), run["scheduler"]):
        said.append(("chosen", words))
    if run.get("simulated"):
        return [*said, ("simulated", f"{run['times_real_time']:.0f} times faster than real time")]
    decision, memory = run["decision_us"], run["memory_mb"]
    used = f"{number(memory['end'], 0)} MB at the end, {number(memory['peak'], 0)} MB at most"
    if decision["p50"] is not None:  # there was something to decide
        decided = f"{number(decision['p50'])} us p50, {number(decision['p99'])} us p99"
        said.append(("decisions", decided))
    return [*said, ("memory", used)]


def who_decided(over: Figures, policy: str) -> str:
    """Why chunks ran, where the policy preferred hardly any of them though there were several
    DNNs: another policy would then give the same. "" elsewhere."""
    chosen = over.get("chosen") or {}
    preferred = (chosen.get("by_policy") or {}).get("mean")
    if preferred is None or preferred >= _HARDLY_ANY or len(over.get("dnns", ())) < 2:
        return ""
    chunks = chosen["chunks"]["mean"]
    reasons = {name: each["mean"] / chunks for name, each in chosen["reasons"].items()}
    listed = ", ".join(f"{name} {percent(each)}" for name, each in reasons.items())
    return f"{policy} preferred {percent(preferred, 1)} of {chunks:.0f} chunks to others: {listed}"


def rate(over: Figures, first: Figures) -> str:
    return f"{FPS(over)} fps of {first['fps_target']:g} (windows of 1/3 s: {windows(over)})"


def answers(over: Figures) -> list[tuple[str, str]]:
    """What is to say of all requests."""
    if "requests" not in over:
        return []
    return [
        ("answered", f"{answered(over)} requests a second"),
        *(("rounds", f"{name}: {_rounds(loop)}") for name, loop in loops(over).items()),
        ("processors", busy(over)),
    ]


def loops(over: Figures) -> Figures:
    """The rounds of closed loops; ``frames`` of a run that draws are those that it has drawn."""
    found: Figures = {} if "fps_target" in over else over.get("frames", {})
    return found


def answered(over: Figures) -> str:
    """Requests a second; of a run that draws, ``throughput_hz`` has its inferences, too."""
    if "fps_target" not in over:
        return mean(over.get("throughput_hz"), 2)
    answered = sum(model["finished"]["mean"] for model in over["requests"].values())
    return f"{answered / over['seconds']['mean']:.2f}"


def _rounds(loop: Figures) -> str:
    return f"{ROUNDS(loop)} a second, {MEAN(loop)} ms each ({P99(loop)} p99)"


def networks(over: Figures, of_dnn: Columns) -> Output:
    """A line a DNN; a line a model that is asked for, and one for all of these."""
    parts: Output = []
    if dnns := over.get("dnns"):
        rows = [[name, *(cell(dnn) for _, cell in of_dnn)] for name, dnn in dnns.items()]
        parts += ["", table(None, ["DNN", *(name for name, _ in of_dnn)], rows)]
    if models := over.get("requests"):
        exits = with_exits([over])
        totals = [*VIOLATED, *([(">accuracy %", ACCURACY)] if exits else [])]
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


def with_exits(over: Iterable[Figures]) -> bool:
    """True if any model has early exits."""
    models = [model for each in over for model in each.get("requests", {}).values()]
    return any(model.get("accuracy") for model in models)
