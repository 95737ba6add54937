"""A recorded run (``heimdall run --trace``) as a machine to simulate, and what that run showed.

The recording holds the plans, that is, the profile measured on that machine, and when everything
was asked for and was done: preprocessing, numbers of crops, events, rendering, hand-overs.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heimdall.bench.scenario import Scenario
from heimdall.bench.systems import Kind, System
from heimdall.coordinator.codec import from_dict
from heimdall.errors import ConfigError, unknown
from heimdall.runtime.deployment import plan_of
from heimdall.runtime.telemetry.trace import Recording, read_recording
from heimdall.simulator.machine import Machine, SimulatedDnn
from heimdall.vocabulary.enums import ChunkMode
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
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU, GPU

_UNSEEN_NS = 1_000_000  # what never happened is assumed to be quick
_PLENTY = 64
_ENOUGH = 3  # different chunks, for a line through them
_WARM_UP_NS = 5_000_000_000


@dataclass(frozen=True)
class RecordedEvents:
    """The times at which a DNN was asked for, from the first frame on."""

    times_ns: tuple[int, ...]

    def waits_s(self, seed: int) -> Iterator[float]:
        """Seconds from each event to the next; there is no more after the last."""
        before_ns = 0
        for time_ns in self.times_ns:
            yield (time_ns - before_ns) / 1e9
            before_ns = time_ns


class RecordedRun:
    """What a recording shows. Raises ConfigError for one that is damaged or too short."""

    def __init__(self, recording: Recording) -> None:
        config = recording.config
        try:
            self.plans: list[DnnPlan] = [from_dict(plan) for plan in config["dnns"]]
            self.interval_ns = int(config["frame_interval_ns"])
            mode = config["mode"]
            name = config["scheduler"] + ("-static" if mode == ChunkMode.STATIC else "")
            name += "" if config["offload"] else "-nooffload"
            self.system = System(
                name, Kind.COORDINATED, config["scheduler"], mode, offload=config["offload"]
            )
            steps = [_step(record) for record in recording.records]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"the recording is damaged: {error!r}") from error
        self._jobs: dict[int, tuple[str, int]] = {}  # job -> its DNN and stage
        self._asked_ns: dict[tuple[type, object], int] = {}
        self._chunks: dict[int, RunChunk] = {}
        self._seen: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        self._requests_ns: defaultdict[str, list[int]] = defaultdict(list)
        self._frames_ns: list[int] = []
        self._latencies_ns: defaultdict[str, list[int]] = defaultdict(list)
        for now_ns, event, actions in steps:
            if event is not None:
                self._hear(now_ns, event)
            for action in actions:
                self._see(now_ns, action)
        if not self._frames_ns or self._frames_ns[-1] - self._frames_ns[0] <= _WARM_UP_NS:
            raise ConfigError(
                f"the recording is too short to be simulated: more than {_WARM_UP_NS / 1e9:g} s "
                "are needed, for the first are warm-up"
            )

    @property
    def seconds(self) -> float:
        """How long it ran after the warm-up."""
        return (self._frames_ns[-1] - self._frames_ns[0] - _WARM_UP_NS) / 1e9

    @property
    def fps(self) -> float:
        """The mean frame rate after the warm-up."""
        warm_ns = self._frames_ns[0] + _WARM_UP_NS
        frames = [time_ns for time_ns in self._frames_ns if time_ns > warm_ns]
        return 1e9 * (len(frames) - 1) / max(frames[-1] - frames[0], 1)

    def latency_ms(self, dnn: str) -> float | None:
        """The mean latency of a DNN after the warm-up; None when it did not run."""
        found = self._latencies_ns[dnn]
        return statistics.fmean(found) / 1e6 if found else None

    def machine(self) -> Machine:
        """The machine as it was seen. Its cores are never short and its pool is never full: the
        times that were seen include what was waited there."""
        cost_ns = max(stage.chunk_cost_ns for plan in self.plans for stage in plan.stages)
        return Machine(
            name="recorded",
            gpu="recorded",
            cpu="recorded",
            render_ns=self._typical("render"),
            batch_ns=0,
            cores=_PLENTY,
            pool_threads=_PLENTY,
            chunk_cost_ns=cost_ns,
            handoff_ns=self._handoffs(),
            move_ns=self._typical("move"),
            guard_ns=self._typical("guard"),
        )

    def dnns(self) -> list[SimulatedDnn]:
        """The DNNs with their measured profiles and what surrounded them."""
        found = []
        for plan in self.plans:
            stages = range(len(plan.stages))
            tasks = [self._samples("tasks", plan.name, str(stage)) for stage in stages]
            event = None
            slope, delays_ns = self._gpu_line(plan.name)
            if not plan.continuous:
                times = tuple(ns - self._frames_ns[0] for ns in self._requests_ns[plan.name])
                event = RecordedEvents(tuple(max(ns, 0) for ns in times))
            found.append(
                SimulatedDnn(
                    plan=plan,
                    prepare_ns=tuple(
                        self._samples("prepare", plan.name, str(stage)) or (_UNSEEN_NS,)
                        for stage in stages
                    ),
                    decode_ns=0,  # it is not in the recording
                    event=event,
                    tasks=tuple(seen or (1,) for seen in tasks),
                    luminance_difference=tuple(self._seen["difference", plan.name]) or (0.0,),
                    gpu_slowdown=slope,
                    gpu_delay_ns=delays_ns,
                    cpu_slowdown=self._cpu_slowdowns(plan.name),
                )
            )
        return found

    def _handoffs(self) -> tuple[int, ...]:
        """All but the longest tenth, those that met a main thread that was drawing."""
        seen = sorted(self._samples("handoff"))
        return tuple(seen[: max(1, len(seen) * 9 // 10)]) or (0,)

    def _samples(self, *what: str) -> tuple[int, ...]:
        return tuple(max(int(seen), 0) for seen in self._seen[what])

    def _typical(self, *what: str, default_ns: int = _UNSEEN_NS) -> int:
        return int(statistics.median(self._seen[what])) if self._seen[what] else default_ns

    def _gpu_line(self, dnn: str) -> tuple[float, tuple[int, ...]]:
        """Chunks took a multiple of what was profiled, and each something more: (the multiple,
        what more in ns)."""
        profiled, took = self._seen["profiled", GPU, dnn], self._seen["took", GPU, dnn]
        if len(set(profiled)) < _ENOUGH:
            return 1.0, (0,)
        slope = statistics.linear_regression(profiled, took).slope
        return slope, tuple(int(t - slope * p) for p, t in zip(profiled, took, strict=True))

    def _cpu_slowdowns(self, dnn: str) -> tuple[float, ...]:
        profiled, took = self._seen["profiled", CPU, dnn], self._seen["took", CPU, dnn]
        return tuple(t / p for p, t in zip(profiled, took, strict=True)) or (1.0,)

    # --- reading --------------------------------------------------------------------------

    def _hear(self, now_ns: int, event: Event) -> None:
        if isinstance(event, FrameRendered):
            self._frames_ns.append(now_ns)
            self._seen["render",].append(event.render_ns)
            next_ns = now_ns - event.render_ns + self.interval_ns
            if next_ns > event.gap_end_ns:
                self._seen["guard",].append(next_ns - event.gap_end_ns)
        elif isinstance(event, InferenceRequested):
            self._requests_ns[event.dnn].append(now_ns)
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
        chunk = self._chunks.pop(event.job)
        (plan,) = (plan for plan in self.plans if plan.name == chunk.dnn)
        stage = plan.stages[chunk.stage]
        profiled_ns = stage.cpu_ns
        if event.processor == GPU:
            profiled_ns = sum(stage.op_ns[chunk.start_op : chunk.end_op]) + stage.chunk_cost_ns
            waited_ns = now_ns - self._asked_ns[RunChunk, event.job] - event.elapsed_ns
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
        elif (
            isinstance(action, Finish)
            and self._frames_ns
            and now_ns > self._frames_ns[0] + _WARM_UP_NS
        ):
            self._latencies_ns[action.dnn].append(action.latency_ns)


def recorded_machine(
    scenario: Scenario, path: str, render_ms: float | None = None
) -> tuple[Machine, list[SimulatedDnn]]:
    """A scenario on the machine of a recorded run that had DNNs of the same names.

    Raises ConfigError when it had not, or is no usable recording.
    """
    run = RecordedRun(read_recording(path))
    machine = run.machine()
    if render_ms is not None:
        machine = replace(machine, render_ns=round(render_ms * 1e6))
    known = {dnn.name: dnn for dnn in run.dnns()}
    found = []
    for dnn in scenario.declared():
        if dnn.name not in known:
            raise ConfigError(f"{path}: {unknown('recorded DNN', dnn.name, known)}")
        recorded = known[dnn.name]
        plan, event = plan_of(dnn, recorded.plan.stages), scenario.settings(dnn.name).event
        found.append(replace(recorded, plan=plan, event=event or recorded.event))
    return machine, found


def _step(record: Mapping[str, Any]) -> tuple[int, Event | None, Sequence[Action]]:
    event = None if record["event"] is None else from_dict(record["event"])
    return int(record["now_ns"]), event, [from_dict(action) for action in record["actions"]]
