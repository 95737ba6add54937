"""What a recorded run (``heimdall run --trace``) shows.

The recording holds the plans, that is, the profile measured on that machine, and when everything
was asked for and was done: preprocessing, numbers of crops, events, rendering, hand-overs.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from heimdall.coordinator.codec import from_dict
from heimdall.errors import ConfigError
from heimdall.runtime.telemetry.trace import Recording
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    DnnMoved,
    Event,
    Finish,
    FrameRendered,
    InferenceRequested,
    InputReady,
    Move,
    Prepare,
    RunChunk,
)
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import CPU, GPU

UNSEEN_NS = 1_000_000  # what never happened is assumed to be quick
_ENOUGH = 3  # different chunks, for a line through them


class Observed:
    """What a recording shows, in ns: all of it, or its ``last_s`` seconds. ``finished_ns``: of each
    DNN, when an inference ended and its latency. Raises ConfigError for a recording that is
    damaged."""

    def __init__(self, recording: Recording, last_s: float | None = None) -> None:
        config = recording.config
        try:
            self.plans: list[DnnPlan] = [from_dict(plan) for plan in config["dnns"]]
            self.interval_ns = int(config["frame_interval_ns"])
            steps = [_step(record) for record in recording.records]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"the recording is damaged: {error!r}") from error
        self._jobs: dict[int, tuple[str, int]] = {}  # job -> its DNN and stage
        self._asked_ns: dict[tuple[type, object], int] = {}
        self._chunks: dict[int, RunChunk] = {}
        self._seen: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        self.requests_ns: defaultdict[str, list[int]] = defaultdict(list)
        self.frames_ns: list[int] = []
        self.finished_ns: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        since_ns = 0 if last_s is None or not steps else steps[-1][0] - round(last_s * 1e9)
        warming_up = True
        for now_ns, event, actions in steps:
            if warming_up and now_ns >= since_ns:
                warming_up = False
                self._seen.clear()
            if event is not None:
                self._hear(now_ns, event)
            for action in actions:
                self._see(now_ns, action)

    def plan(self, dnn: str) -> DnnPlan:
        """The plan of a DNN."""
        (plan,) = (plan for plan in self.plans if plan.name == dnn)
        return plan

    def handoffs(self) -> tuple[int, ...]:
        """All but the longest tenth, those that met a main thread that was drawing."""
        seen = sorted(self.samples("handoff"))
        return tuple(seen[: max(1, len(seen) * 9 // 10)]) or (0,)

    def samples(self, *what: str) -> tuple[int, ...]:
        """How long each ``what`` took: ("render"), ("prepare", dnn, stage), ("tasks", ...)."""
        return tuple(max(int(seen), 0) for seen in self._seen[what])

    def differences(self, dnn: str) -> tuple[float, ...]:
        """The luminance differences of a DNN's inputs."""
        return tuple(self._seen["difference", dnn]) or (0.0,)

    def typical(self, *what: str, default_ns: int = UNSEEN_NS) -> int:
        """The median of ``samples``."""
        return int(statistics.median(self._seen[what])) if self._seen[what] else default_ns

    def gpu_line(self, dnn: str) -> tuple[float, tuple[int, ...]]:
        """Chunks took a multiple of what was profiled, and each something more: (the multiple,
        what more in ns)."""
        profiled, took = self._seen["profiled", GPU, dnn], self._seen["took", GPU, dnn]
        if len(set(profiled)) < _ENOUGH:
            return 1.0, (0,)
        slope = statistics.linear_regression(profiled, took).slope
        if slope <= 0:  # a few chunks on a busy machine
            slope = sum(took) / sum(profiled)
        return slope, tuple(int(t - slope * p) for p, t in zip(profiled, took, strict=True))

    def cpu_slowdowns(self, dnn: str) -> tuple[float, ...]:
        """How much longer than profiled each inference on the CPU took."""
        profiled, took = self._seen["profiled", CPU, dnn], self._seen["took", CPU, dnn]
        return tuple(t / p for p, t in zip(profiled, took, strict=True)) or (1.0,)

    # --- reading --------------------------------------------------------------------------

    def _hear(self, now_ns: int, event: Event) -> None:
        if isinstance(event, FrameRendered):
            self.frames_ns.append(now_ns)
            self._seen["render",].append(event.render_ns)
            next_ns = now_ns - event.render_ns + self.interval_ns
            if next_ns > event.gap_end_ns:
                self._seen["guard",].append(next_ns - event.gap_end_ns)
        elif isinstance(event, InferenceRequested):
            self.requests_ns[event.dnn].append(now_ns)
        elif isinstance(event, InputReady):
            dnn, stage = self._jobs[event.job]
            since_ns = self._asked_ns.pop((Prepare, event.job))
            self._seen["prepare", dnn, str(stage)].append(now_ns - since_ns)
            self._seen["tasks", dnn, str(stage)].append(event.tasks)
            if stage == 0:
                self._seen["difference", dnn].append(event.luminance_difference)
        elif isinstance(event, ChunkFinished):
            self._chunk_finished(now_ns, event)
        elif isinstance(event, DnnMoved) and (Move, event.dnn) in self._asked_ns:
            self._seen["move",].append(now_ns - self._asked_ns.pop((Move, event.dnn)))

    def _chunk_finished(self, now_ns: int, event: ChunkFinished) -> None:
        chunk = self._chunks.pop(event.job, None)
        if chunk is None:  # it ran together with others, and its own time is not known
            return
        stage = self.plan(chunk.dnn).stages[chunk.stage]
        profiled_ns = stage.cpu_ns
        if event.processor == GPU:  # it may have ended early, and held fallback ops
            profiled_ns = _on_gpu_ns(stage, event.start_op, event.end_op)
            ran_ns = event.elapsed_ns + (event.off_ns or 0)
            waited_ns = now_ns - self._asked_ns[RunChunk, event.job] - ran_ns
            self._seen["handoff",].append(waited_ns / 2)
        self._seen["took", event.processor, chunk.dnn].append(event.elapsed_ns)
        self._seen["profiled", event.processor, chunk.dnn].append(max(profiled_ns, 1))

    def _see(self, now_ns: int, action: Action) -> None:
        if isinstance(action, Prepare):
            self._jobs[action.job] = (action.dnn, action.stage)
            self._asked_ns[Prepare, action.job] = now_ns
        elif isinstance(action, RunChunk):
            self._chunks[action.job] = action
            self._asked_ns[RunChunk, action.job] = now_ns
        elif isinstance(action, Move):
            self._asked_ns[Move, action.dnn] = now_ns
        elif isinstance(action, Finish):
            self.finished_ns[action.dnn].append((now_ns, action.latency_ns))


def _on_gpu_ns(stage: StagePlan, start_op: int, end_op: int) -> int:
    """What ops took there when they were profiled: without those that ran on the CPU, and with a
    wait for the GPU behind each run of its own."""
    found_ns, before = 0, True
    for op in range(start_op, end_op):
        off = stage.fallback[op]
        if not off:
            found_ns += stage.op_ns[op] + before * stage.chunk_cost_ns
        before = off
    return found_ns


def _step(record: Mapping[str, Any]) -> tuple[int, Event | None, Sequence[Action]]:
    event = None if record["event"] is None else from_dict(record["event"])
    return int(record["now_ns"]), event, [from_dict(action) for action in record["actions"]]
