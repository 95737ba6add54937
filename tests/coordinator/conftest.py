"""A tiny deterministic driver of the frame loop: virtual clock, null GPU, CPU and pool."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from heimdall.coordinator import Coordinator
from heimdall.runtime.loop.frame_loop import FrameLoop
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    DnnAdded,
    DnnMoved,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    InferenceRequested,
    InputReady,
    Move,
    Prepare,
    RunChunk,
    RunFallback,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU, GPU, REMOTE
from tests.stages import MS, make_plan, make_stage

START_NS = 7_777 * MS  # the clock need not begin at zero


@dataclass
class World:
    """Runs a coordinator on a virtual clock and checks physics on the way.

    Rendering takes the GPU every ``interval_ms`` for ``render_ms`` (after a chunk that overran).
    ``speed`` scales the real time of a chunk against its plan, ``tasks`` says how many inputs a
    stage gets, ``luminance`` the content variation of a DNN's inputs, ``stop`` the op before
    which a chunk that may end early ends. The CPU runs ``cpu_workers`` chunks at once.
    """

    coordinator: Coordinator
    plans: list[DnnPlan]
    interval_ms: float = 33.333
    render_ms: float = 6.0
    prepare_ms: float = 2.0
    move_ms: float = 50.0
    speed: Callable[[str, str], float] = lambda dnn, processor: 1.0
    tasks: Callable[[str, int], int] = lambda dnn, stage: 1
    luminance: Callable[[str], float] = lambda dnn: 0.0
    stop: Callable[[RunChunk], int] = lambda chunk: chunk.end_op
    cpu_workers: int = 1
    now_ns: int = START_NS
    log: list[tuple[int, Event | None, list[Action]]] = field(default_factory=list)
    late_frames: int = 0

    def __post_init__(self) -> None:
        self._heap: list[tuple[int, int, Event | str]] = []
        self._sequence = 0
        self._loop = FrameLoop(
            self.coordinator,
            interval_ns=int(self.interval_ms * MS),
            start_ns=self.now_ns,
            drawing_ns=int(self.render_ms * MS),
            guard_ns=0,
            observe=lambda now_ns, event, actions: self.log.append((now_ns, event, list(actions))),
        )
        self._busy: dict[str, set[int]] = {GPU: set(), CPU: set(), REMOTE: set()}  # jobs
        self._capacity = {GPU: 1, CPU: self.cpu_workers, REMOTE: 1}
        self._render_waits = False
        self._stages = {plan.name: plan.stages for plan in self.plans}
        self.at(0, "start")

    def add(self, plan: DnnPlan) -> None:
        """A DNN of which the coordinator will be told."""
        self._stages[plan.name] = plan.stages

    def at(self, after_ms: float, event: Event | str) -> None:
        self.at_ns(self.now_ns + int(after_ms * MS), event)

    def at_ns(self, time_ns: int, event: Event | str) -> None:
        heapq.heappush(self._heap, (time_ns, self._sequence, event))
        self._sequence += 1

    def request(self, dnn: str, every_ms: float, from_ms: float, to_ms: float) -> None:
        after = from_ms
        while after < to_ms:
            self.at(after, InferenceRequested(dnn))
            after += every_ms

    def run(self, seconds: float) -> World:
        end_ns = self.now_ns + int(seconds * 1000 * MS)
        while True:
            wake_ns = self._loop.next_wakeup_ns()
            event_ns = self._heap[0][0]
            if min(event_ns, end_ns if wake_ns is None else wake_ns) >= end_ns:
                self.now_ns = end_ns
                return self
            if wake_ns is not None and wake_ns < event_ns:
                self.now_ns = max(self.now_ns, wake_ns)
                self._carry_out(self._loop.woken(self.now_ns))
                continue
            self.now_ns, _, event = heapq.heappop(self._heap)
            if event == "start":
                self._start()
            elif event == "drawn":
                self._drawn()
            elif not isinstance(event, str):
                self.tell(event)

    def tell(self, event: Event) -> list[Action]:
        if isinstance(event, ChunkFinished):
            self._busy[event.processor].discard(event.job)
        if isinstance(event, DnnAdded):
            self._stages[event.plan.name] = event.plan.stages
        actions = self._loop.received(event, self.now_ns)
        self._carry_out(actions)
        if isinstance(event, ChunkFinished) and event.processor == GPU and self._render_waits:
            self._render_waits = False
            self._draw()
        return actions

    def _start(self) -> None:
        self._carry_out(self._loop.started(self.now_ns))
        self._started_ns = self.now_ns
        if self._busy[GPU]:
            self._render_waits = True
        else:
            self._draw()

    def _draw(self) -> None:
        self.at(self.render_ms, "drawn")

    def _drawn(self) -> None:
        loop = self._loop
        loop.drawn(self.now_ns, self.now_ns - self._started_ns)
        self._carry_out(loop.opened(self.now_ns))
        times = loop.presented(max(self.now_ns, loop.present_ns))
        self.late_frames += times.presented_ns > times.deadline_ns + MS
        self.at_ns(max(loop.start_ns, self.now_ns), "start")

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            self._execute(action)

    def _execute(self, action: Action) -> None:
        if isinstance(action, Prepare):
            ready = InputReady(
                action.job, self.tasks(action.dnn, action.stage), self.luminance(action.dnn)
            )
            self.at(self.prepare_ms, ready)
        elif isinstance(action, RunChunk):
            busy = self._busy[action.processor]
            busy.add(action.job)
            assert len(busy) <= self._capacity[action.processor], "too many chunks at once"
            plan = self._stages[action.dnn][action.stage]
            profiled, end = plan.cpu_ns, self.stop(action) if action.until_ns else action.end_op
            off = 0
            if action.processor == REMOTE:
                assert plan.remote_ns is not None
                profiled = plan.remote_ns
            if action.processor == GPU:
                marked = list(zip(plan.op_ns, plan.fallback, strict=True))[action.start_op : end]
                profiled = plan.chunk_cost_ns + sum(
                    ns for ns, falls_back in marked if not falls_back
                )
                off = sum(ns for ns, falls_back in marked if falls_back)
            elapsed = int(profiled * self.speed(action.dnn, action.processor))
            done = ChunkFinished(
                action.job, action.processor, action.start_op, end, elapsed, off or None
            )
            self.at_ns(self.now_ns + elapsed + off, done)
        elif isinstance(action, RunFallback):
            ops = self._stages[action.dnn][action.stage].op_ns
            elapsed = sum(ops[action.start_op : action.end_op])
            self.at_ns(self.now_ns + elapsed, FallbackFinished(action.job, action.end_op, elapsed))
        elif isinstance(action, Move):
            self.at(self.move_ms, DnnMoved(action.dnn, action.processor))
        elif isinstance(action, Drop):
            for busy in self._busy.values():
                busy.discard(action.job)

    def forget(self, processor: str) -> None:
        """The processor failed: what it ran never reports back."""
        jobs = self._busy[processor].copy()
        self._busy[processor].clear()
        self._heap = [
            entry
            for entry in self._heap
            if not (isinstance(entry[2], ChunkFinished) and entry[2].job in jobs)
        ]
        heapq.heapify(self._heap)

    def actions(self, kind: type) -> list:
        return [action for _, _, actions in self.log for action in actions if type(action) is kind]

    def timed(self, kind: type) -> list:
        """(ms since the start, action) of one kind."""
        return [
            ((now_ns - START_NS) / MS, action)
            for now_ns, _, actions in self.log
            for action in actions
            if type(action) is kind
        ]

    def finishes(self, dnn: str) -> list[Finish]:
        return [action for action in self.actions(Finish) if action.dnn == dnn]

    def latencies_ms(self, dnn: str) -> list[float]:
        return [finish.latency_ns / MS for finish in self.finishes(dnn)]


def make_world(plans: list[DnnPlan], *, world: dict | None = None, **options) -> World:
    settings = dict(world or {})
    interval_ms = settings.get("interval_ms", 33.333)
    settings.setdefault("cpu_workers", options.get("cpu_workers", 1))
    options.setdefault("scheduler", "max-min")
    coordinator = Coordinator(plans, frame_interval_ns=int(interval_ms * MS), **options)
    return World(coordinator, plans, **settings)


def check_jobs(world: World) -> None:
    """Every job runs its ops in order, each once, and ends once; one job a DNN in flight."""
    flying: dict[str, int] = {}
    progress: dict[int, tuple[int, int, int]] = {}
    for _, event, actions in world.log:
        if isinstance(event, ChunkFinished) and event.job in progress:
            progress[event.job] = (*progress[event.job][:2], event.end_op)
        for action in actions:
            if isinstance(action, Prepare):
                begins = action.dnn not in flying or bool(action.anew)
                assert (action.stage == 0) == begins, "one job in flight"
                flying[action.dnn] = action.job
                progress[action.job] = (action.stage, 0, 0)
            elif isinstance(action, (RunChunk, RunFallback)):
                stage, task, op = progress[action.job]
                ops = len(world._stages[action.dnn][stage].op_ns)
                if op == ops:
                    task, op = task + 1, 0
                assert (action.stage, action.task, action.start_op) == (stage, task, op)
                assert op < action.end_op <= ops
                progress[action.job] = (stage, task, action.end_op)
            elif isinstance(action, (Finish, Drop)):
                assert flying.pop(action.dnn) == action.job
                if isinstance(action, Finish):
                    stages = world._stages[action.dnn]
                    stage, _, op = progress[action.job]
                    assert stage == len(stages) - 1
                    assert op in (0, len(stages[stage].op_ns))


@pytest.fixture(scope="session")
def sim() -> SimpleNamespace:
    return SimpleNamespace(
        stage=make_stage, plan=make_plan, world=make_world, check=check_jobs, ms=MS, start=START_NS
    )
