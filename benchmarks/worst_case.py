"""Who had the GPU while an inference waited: an account of a DNN's latencies, the worst one by one.

    python -m benchmarks.worst_case shopping-phone style --runs 5 --seconds 30

Each run is traced (or give ``--trace FILE`` of `heimdall run --trace`), and every instant from when
an inference is enqueued to its last op counts once: it runs itself, on the GPU or in the pool; the
frame has the GPU; another DNN's chunk does, begun before it came or after; it has been chosen or is
done and the other thread has not got to it yet (handing over); its op waits for the pool; or the
GPU stands idle. The lower bound is what it takes alone, and one frame's interval.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from heimdall.coordinator.codec import from_dict
from heimdall.lab.bench.runner import compare
from heimdall.runtime.telemetry.trace import Recording, read_recording
from heimdall.vocabulary.events import (
    ChunkFinished,
    FallbackFinished,
    Finish,
    FrameRendered,
    InputReady,
    RenderStarted,
    RunChunk,
    RunFallback,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import GPU

_Step = tuple[int, Any, list[Any]]  # when, the event, the actions

# Of an instant, the first that is true.
OWN, OWN_CPU, OWN_POOL = "its chunks on the GPU", "its chunks on the CPU", "its ops in the pool"
FRAME, BEFORE, AFTER = "the frame", "a chunk begun before it came", "a chunk begun after it came"
HANDED, POOL, IDLE = "handing over", "waiting for the pool", "GPU idle"
ORDER = (OWN, OWN_CPU, OWN_POOL, FRAME, BEFORE, AFTER, HANDED, POOL, IDLE)


@dataclass(frozen=True)
class Inference:
    """One of a DNN: from when to when (ns), and what that time was, in ns by ``ORDER``."""

    start_ns: int
    end_ns: int
    spent_ns: Mapping[str, int]
    chunks: int
    behind: str  # the DNN whose chunk ran as it came

    @property
    def ms(self) -> float:
        return (self.end_ns - self.start_ns) / 1e6


@dataclass(frozen=True)
class _Span:
    start_ns: int
    end_ns: int
    what: str  # "frame", "chunk", "handed", "pool", "queued"
    job: int = -1
    dnn: str = ""
    processor: str = ""


def account(recording: Recording, dnn: str, skip_s: float = 0.0) -> list[Inference]:
    """The inferences of a DNN, ``skip_s`` after the recording began, in their order."""
    steps = [_step(each) for each in recording.records]
    if not steps:
        return []
    spans, came, ended = [*_frames(steps), *_work(steps)], _came(steps), _ended(steps, dnn)
    since_ns = steps[0][0] + round(skip_s * 1e9)
    found = []
    for job, end_ns in sorted(ended.items(), key=lambda each: each[1]):
        start_ns = came.get(job, end_ns)
        if start_ns >= since_ns:
            near = [each for each in spans if each.end_ns > start_ns and each.start_ns < end_ns]
            found.append(_account(job, start_ns, end_ns, near))
    return found


def _account(job: int, start_ns: int, end_ns: int, near: Sequence[_Span]) -> Inference:
    edges = {start_ns, end_ns}
    edges |= {ns for each in near for ns in (each.start_ns, each.end_ns) if start_ns < ns < end_ns}
    spent: Counter[str] = Counter()
    at = sorted(edges)
    for left, right in itertools.pairwise(at):
        now = [each for each in near if each.start_ns <= left and each.end_ns >= right]
        kinds = [_kind(each, job, start_ns) for each in now]
        spent[min(kinds, key=ORDER.index, default=IDLE)] += right - left
    begun = [each for each in near if each.what == "chunk" and each.start_ns < start_ns]
    behind = next((each.dnn for each in begun if each.processor == GPU and each.job != job), "")
    chunks = sum(each.what == "chunk" and each.job == job for each in near)
    return Inference(start_ns, end_ns, spent, chunks, behind)


def _kind(span: _Span, job: int, start_ns: int) -> str:
    if span.what == "frame":
        return FRAME
    if span.what == "chunk" and span.job == job:
        return OWN if span.processor == GPU else OWN_CPU
    if span.what == "chunk":
        return IDLE if span.processor != GPU else BEFORE if span.start_ns < start_ns else AFTER
    if span.job != job:
        return IDLE
    return {"pool": OWN_POOL, "queued": POOL, "handed": HANDED}[span.what]


def _step(record: Mapping[str, Any]) -> _Step:
    event = record["event"]
    actions = [from_dict(action) for action in record["actions"]]
    return record["now_ns"], event and from_dict(event), actions


def _frames(steps: Sequence[_Step]) -> Iterator[_Span]:
    started_ns = None
    for now_ns, event, _ in steps:
        if isinstance(event, RenderStarted):
            started_ns = now_ns
        elif isinstance(event, FrameRendered) and started_ns is not None:
            yield _Span(started_ns, now_ns, "frame")


def _work(steps: Sequence[_Step]) -> Iterator[_Span]:
    """A chunk or an op of the pool: the end of the time from asking to hearing is its own. Of a
    chunk that was held for fallback ops these come last here: how long they took is known, and not
    when."""
    asked: dict[tuple[str, int], tuple[int, Any]] = {}
    for now_ns, event, actions in steps:
        kind = {ChunkFinished: "chunk", FallbackFinished: "pool"}.get(type(event))
        if kind is not None and (begun := asked.pop((kind, event.job), None)) is not None:
            asked_ns, action = begun
            off_ns = getattr(event, "off_ns", None) or 0
            began_ns = max(now_ns - event.elapsed_ns - off_ns, asked_ns)
            where = getattr(action, "processor", "")
            before = "handed" if kind == "chunk" else "queued"
            yield _Span(asked_ns, began_ns, before, event.job, action.dnn, where)
            yield _Span(began_ns, now_ns - off_ns, kind, event.job, action.dnn, where)
            yield _Span(now_ns - off_ns, now_ns, "pool", event.job, action.dnn, where)
        for action in actions:
            if isinstance(action, RunChunk | RunFallback):
                key = "chunk" if isinstance(action, RunChunk) else "pool"
                asked[key, action.job] = now_ns, action


def _came(steps: Sequence[_Step]) -> dict[int, int]:
    found: dict[int, int] = {}
    for now_ns, event, _ in steps:
        if isinstance(event, InputReady):
            found.setdefault(event.job, now_ns)
    return found


def _ended(steps: Sequence[_Step], dnn: str) -> dict[int, int]:
    return {
        action.job: now_ns
        for now_ns, _, actions in steps
        for action in actions
        if isinstance(action, Finish) and action.dnn == dnn
    }


def bound_ms(recording: Recording, dnn: str) -> float:
    """What an inference takes at least, if it comes as a frame has just begun: itself, and a
    frame's interval."""
    plan = _plan(recording, dnn)
    alone_ns = sum(sum(stage.op_ns) for stage in plan.stages)
    return (alone_ns + int(recording.config["frame_interval_ns"])) / 1e6


def _plan(recording: Recording, dnn: str) -> DnnPlan:
    plans: list[DnnPlan] = [from_dict(each) for each in recording.config["dnns"]]
    return next(each for each in plans if each.name == dnn)


def useful(recording: Recording, skip_s: float) -> dict[str, float]:
    """GPU time in ms: what chunks took, what their ops take in the profile, and by that the waits
    at their ends."""
    plans = {each.name: each for each in map(from_dict, recording.config["dnns"])}
    took, planned, cuts, chunks = 0.0, 0.0, 0.0, 0
    since_ns = None
    last: dict[int, RunChunk] = {}
    for now_ns, event, actions in map(_step, recording.records):
        since_ns = now_ns + round(skip_s * 1e9) if since_ns is None else since_ns
        on_gpu = isinstance(event, ChunkFinished) and event.processor == GPU
        if on_gpu and now_ns >= since_ns and event.job in last:
            action = last[event.job]
            stage = plans[action.dnn].stages[action.stage]
            span = slice(event.start_op, event.end_op)
            took, chunks = took + event.elapsed_ns / 1e6, chunks + 1
            cuts += stage.chunk_cost_ns / 1e6
            ops = zip(stage.op_ns[span], stage.fallback[span], strict=True)
            planned += sum(ns for ns, falls_back in ops if not falls_back) / 1e6
        last |= {each.job: each for each in actions if isinstance(each, RunChunk)}
    found = {"took_ms": took, "profile_ms": planned, "cuts_ms": cuts}
    return {"chunks": chunks, **{name: round(ms, 1) for name, ms in found.items()}}


def table(found: Sequence[Inference], bound: float) -> str:
    """Means of all, and each of the slowest tenth, in ms."""
    worst = sorted(found, key=lambda each: -each.ms)[: max(len(found) // 10, 3)]
    lines = ["| | ms | x bound | chunks | " + " | ".join(ORDER) + " | came behind |"]
    lines.append("|---|---|---|---|" + "---|" * (len(ORDER) + 1))

    def line(name: str, few: Sequence[Inference], behind: str) -> str:
        ms = float(np.mean([each.ms for each in few]))
        parts = [np.mean([each.spent_ns.get(kind, 0) for each in few]) / 1e6 for kind in ORDER]
        chunks = np.mean([each.chunks for each in few])
        cells = " | ".join(f"{part:.1f}" for part in parts)
        return f"| {name} | {ms:.1f} | {ms / bound:.2f} | {chunks:.1f} | {cells} | {behind} |"

    if found:
        lines.append(line(f"mean of {len(found)}", found, ""))
        lines += [
            line(f"{number}. slowest", [each], each.behind) for number, each in enumerate(worst, 1)
        ]
    return "\n".join(lines)


def traced(scenario: str, system: str, seconds: float) -> Recording:
    """A run of a scenario on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        result = compare(scenario, system, seconds=seconds, trace=path)
        for run in result["runs"].get(system, ()):
            print(json.dumps({"chosen": run["chosen"], "gpu": run["gpu"]}), flush=True)
        return read_recording(path)


@click.command()
@click.argument("scenario")
@click.argument("dnn")
@click.option("--system", default="max-total", show_default=True)
@click.option("--seconds", default=30.0, show_default=True)
@click.option("--runs", default=1, show_default=True)
@click.option("--skip", default=5.0, show_default=True, help="Seconds of warm-up.")
@click.option("--trace", type=click.Path(exists=True, path_type=Path), help="Of a run that was.")
def main(
    scenario: str, dnn: str, system: str, seconds: float, runs: int, skip: float, trace: Path | None
) -> None:
    """Print the account of DNN in SCENARIO."""
    for _ in range(runs if trace is None else 1):
        recording = read_recording(trace) if trace else traced(scenario, system, seconds)
        bound = bound_ms(recording, dnn)
        found, limit_ms = account(recording, dnn, skip), _plan(recording, dnn).constraint_ns / 1e6
        late = sum(each.ms > limit_ms for each in found)
        print(f"\nlower bound {bound:.1f} ms; GPU: {useful(recording, skip)}")
        print(f"{late} of {len(found)} took more than {limit_ms:g} ms\n")
        print(table(found, bound), flush=True)


if __name__ == "__main__":
    main()
