"""The coordinator as a state machine: events that may happen in any order, and some that may not.

Everything legal is told to two coordinators, what is not to one of them: their answers, what they
show and what they are made of must stay the same. What else must hold is in ``ledger``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from heimdall.coordinator import Coordinator
from heimdall.coordinator.replay import record, replay
from heimdall.coordinator.states import CoordinationError
from heimdall.errors import ConfigError
from heimdall.schedulers import SCHEDULERS, Scheduler, utility_for
from heimdall.vocabulary.enums import ChunkMode
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnAdded,
    DnnAdjusted,
    DnnBuilt,
    DnnMoved,
    DnnRemoved,
    Event,
    FallbackFinished,
    FrameArrived,
    FrameRendered,
    InferenceRequested,
    InputReady,
    JobFailed,
    ProcessorBack,
    ProcessorLost,
    Reconfigured,
    RenderingStopped,
    RenderStarted,
    SceneChanged,
    SlowDecision,
)
from heimdall.vocabulary.processors import GPU, REMOTE
from tests.coordinator.drawn import FRAME_NS, OPTIONS, PROCESSORS, dnn_plans
from tests.coordinator.erratic import ERRATIC
from tests.coordinator.impossible import impossible
from tests.coordinator.ledger import Flying, Ledger
from tests.stages import MS

POLICIES: Mapping[str, type[Scheduler]] = {**SCHEDULERS, **ERRATIC}
GAP_NS = 25 * MS
LATEST_S = 600  # then all that is in flight has ended, once nothing is wrong any more

numbers = st.integers(0, 2**16)
told = 0  # events, by all machines together


class Machine(RuleBasedStateMachine):
    """``policies``: the names of those that are tried."""

    policies: Sequence[str] = tuple(POLICIES)

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 7_777 * MS
        self.requests = self.names = self.frames = 0
        self.records: list[dict[str, Any]] = []
        self.begun = self.sound = False

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        policy = data.draw(st.sampled_from(self.policies))
        processors = data.draw(PROCESSORS)
        self.remote = any(each.id == REMOTE for each in processors)
        plans = [
            data.draw(dnn_plans(self._name(), self.remote))
            for _ in range(data.draw(st.integers(1, 4)))
        ]
        made: dict[str, Any] = {}
        if policy in ERRATIC:
            percent = st.sampled_from([0, 5, 40, 100])
            made = {"seed": data.draw(numbers), "wrong": data.draw(percent)}
            made["silent"] = data.draw(percent)
        self.fresh = lambda: ERRATIC[policy](**made) if made else policy
        self.both = [
            Coordinator(
                plans,
                scheduler=self.fresh(),
                frame_interval_ns=FRAME_NS,
                processors=processors,
                **options,
            )
            for options in [data.draw(OPTIONS)]
            for _ in range(2)
        ]
        self.config = json.loads(json.dumps(self.both[0].config()))
        self.policy = policy
        self.ledger = Ledger(plans, processors, self.both[0].config(), POLICIES)
        self.begun = self.sound = True

    # -- telling ---------------------------------------------------------------------------

    def tell(self, event: Event | None) -> None:
        """It happens, or (None) what is due is asked for."""
        global told
        told += 1
        self.sound = False
        now_ns, before = self.now_ns, self.both[0].snapshot(self.now_ns)
        answers = [
            each.wake(now_ns) if event is None else each.receive(event, now_ns)
            for each in self.both
        ]
        assert answers[0] == answers[1]
        self.records.append(record(now_ns, event, answers[0]))
        self.ledger.saw(now_ns, event, answers[0], before)
        self.ledger.check(self.both[0].snapshot(now_ns))
        self.sound = True

    def refused(self, event: Event) -> None:
        """It cannot happen, and nothing comes of it."""
        global told
        told += 1
        self.sound = False
        try:
            self.both[0].receive(event, self.now_ns)
        except (CoordinationError, ConfigError):
            pass
        else:
            raise AssertionError(f"was not refused: {event}")
        told_of_it, twin = self.both
        assert told_of_it.config() == twin.config()
        assert told_of_it.next_wakeup_ns() == twin.next_wakeup_ns()
        shown, of_twin = (each.snapshot(self.now_ns) for each in self.both)
        assert (shown.dnns, shown.decisions) == (of_twin.dnns, of_twin.decisions)
        assert vars(shown.gap) == vars(of_twin.gap)
        self.sound = True

    def passes(self, ns: int) -> None:
        """Time passes, and what is due meanwhile is asked for."""
        end_ns = self.now_ns + ns
        for _ in range(3):  # more than once where that is due, too; late where it is very often
            due_ns = self.both[0].next_wakeup_ns()
            if due_ns is None or due_ns > end_ns:
                break
            self.now_ns = max(self.now_ns, due_ns)
            self.tell(None)
            due_ns = self.both[0].next_wakeup_ns()
            assert due_ns is None or due_ns > self.now_ns, "it would be woken all the time"
        self.now_ns = end_ns

    def pick(self, some: Iterable[Any], number: int) -> Any:
        found = list(some)
        return found[number % len(found)]

    def _name(self) -> str:
        self.names += 1
        return f"dnn{self.names}"

    # -- as an executor and a frame loop -----------------------------------------------------

    @rule(ms=st.sampled_from([0.1, 1, 5, 20, 40]))
    def time_passes(self, ms: float) -> None:
        self.passes(int(ms * MS))

    @rule(left_ms=st.sampled_from([25, 25, 25, 10, 0, 40]))
    def next_frame(self, left_ms: int) -> None:
        ledger = self.ledger
        if ledger.drawing:
            self.tell(FrameRendered(self.frames, self.now_ns + left_ms * MS))
        else:
            self.frames += 1
            self.tell(RenderStarted(self.frames))

    @rule(number=numbers)
    def nothing_is_drawn(self, number: int) -> None:
        if number % 4 == 0:
            self.tell(RenderingStopped())

    @precondition(lambda self: self.begun and self.ledger.jobs)
    @rule(number=numbers, speed=st.sampled_from([1, 1, 1, 0.5, 3, 20]), tasks=st.integers(0, 3))
    def something_ends(self, number: int, speed: float, tasks: int) -> None:
        """An input is ready, or ops have run: of any job."""
        if self.busy():
            self.ends(self.pick(self.busy(), number), number, speed, tasks)

    def busy(self) -> list[Flying]:
        return [job for job in self.ledger.jobs.values() if job.doing != "ready"]

    def ends(self, job: Flying, number: int = 0, speed: float = 1, tasks: int = 1) -> None:
        if job.doing == "preparing":
            tasks = tasks if job.stage else 1
            self.tell(InputReady(job.id, tasks, (number % 7) * 1e6, self.frames))
        elif job.doing == "fallback":
            self.tell(FallbackFinished(job.id, job.span[1], int(2 * MS * speed)))
        else:
            start, end = job.span
            if job.early and number % 3 == 0:
                end = start + 1 + number % (end - start)
            elapsed_ns = int(speed * took_ns(job, start, end))
            held = job.processor == GPU and any(job.network.fallback[start:end])
            off_ns = 2 * MS if held else None
            self.tell(ChunkFinished(job.id, job.processor, start, end, elapsed_ns, off_ns))

    @rule(count=st.integers(5, 60), ms=st.sampled_from([0.5, 2, 4]), speed=st.sampled_from([1, 2]))
    def it_goes_on(self, count: int, ms: float, speed: float) -> None:
        """As it does without faults: what has waited longest ends first, frames come in time."""
        frame_ns = self.now_ns
        for number in range(count):
            self.passes(int(ms * MS))
            if self.now_ns >= frame_ns:
                self.next_frame(25)
                frame_ns = self.now_ns + (8 * MS if self.ledger.drawing else GAP_NS)
            elif busy := self.busy():
                self.ends(min(busy, key=lambda job: (job.asked, job.id)), 1, speed)
            elif self.ledger.moves:
                self.dnn_moved(1)
            else:
                self.something_is_asked_for(number)

    @precondition(lambda self: self.begun and self.ledger.moves)
    @rule(number=numbers)
    def dnn_moved(self, number: int) -> None:
        """Where it was asked to, or it failed to and stays."""
        move = self.ledger.moves.pop(0)
        processor = self.ledger.where[move.dnn] if number % 5 == 0 else move.processor
        self.tell(DnnMoved(move.dnn, processor))

    # -- as apps and clients -----------------------------------------------------------------

    @precondition(lambda self: self.begun and self.ledger.plans)
    @rule(number=numbers)
    def something_is_asked_for(self, number: int) -> None:
        if not self.ledger.plans:
            return
        plan = self.ledger.plans[self.pick(self.ledger.plans, number)]
        if plan.queued:
            self.requests += 1
            slo_ns = (None, 50 * MS, 2000 * MS)[number % 3]
            self.tell(InferenceRequested(plan.name, self.requests, slo_ns))
        else:
            self.tell(InferenceRequested(plan.name, replaces=number % 3 == 0))

    @precondition(lambda self: self.begun and self.ledger.plans)
    @rule(change=st.sampled_from([0, 1e6, 1e9]))
    def the_picture_changes(self, change: float) -> None:
        self.frames += 1
        self.tell(SceneChanged(tuple(self.ledger.plans), change))
        self.tell(FrameArrived((*self.ledger.plans, *self.ledger.gone), self.frames))

    # -- as faults ---------------------------------------------------------------------------

    @rule(number=numbers)
    def processor_is_lost(self, number: int) -> None:
        if number % 2:
            self.tell(ProcessorLost(self.pick(self.ledger.lanes, number // 2)))

    @precondition(lambda self: self.begun and self.ledger.lost)
    @rule(number=numbers)
    def processor_is_back(self, number: int) -> None:
        self.tell(ProcessorBack(self.pick(sorted(self.ledger.lost), number)))

    @precondition(lambda self: self.begun and (self.ledger.jobs or self.ledger.finished))
    @rule(number=numbers)
    def job_fails(self, number: int) -> None:
        """Or the decoding of its result does."""
        self.tell(JobFailed(self.pick([*self.ledger.jobs, *self.ledger.finished], number), "no"))

    @precondition(lambda self: self.begun and (self.ledger.late or self.ledger.late_of_lost))
    @rule(number=numbers)
    def late_news(self, number: int) -> None:
        """What has been dropped reports back all the same, or what a lost processor was at."""
        ledger = self.ledger
        news: list[Any] = ledger.late if ledger.late and number % 2 else ledger.late_of_lost
        if news:
            told = news.pop(number % len(news))
            if not any(job.id == told.job for job in ledger.on(getattr(told, "processor", ""))):
                self.tell(told)  # else nobody could tell it from what runs there now

    @rule(number=numbers)
    def decision_was_slow(self, number: int) -> None:
        if number % 4 == 0:
            self.tell(SlowDecision(6 * MS))

    # -- as users ----------------------------------------------------------------------------

    @rule(data=st.data(), number=numbers)
    def dnn_comes(self, data: st.DataObject, number: int) -> None:
        ledger = self.ledger
        if len(ledger.plans) < 6:
            back = ledger.gone and number % 3 == 0
            name = self.pick(sorted(ledger.gone), number) if back else self._name()
            self.tell(DnnAdded(data.draw(dnn_plans(name, self.remote))))

    @precondition(lambda self: self.begun and self.ledger.plans)
    @rule(number=numbers)
    def dnn_goes(self, number: int) -> None:
        if number % 2:
            self.tell(DnnRemoved(self.pick(self.ledger.plans, number // 2)))

    @precondition(lambda self: self.begun and self.ledger.unbuilt)
    @rule(number=numbers)
    def dnn_is_built(self, number: int) -> None:
        plan = self.ledger.plans[self.pick(sorted(self.ledger.unbuilt), number)]
        self.tell(DnnBuilt(replace(plan, built=True)))

    @precondition(lambda self: self.begun and self.ledger.plans)
    @rule(number=numbers, priority=st.sampled_from(["low", "normal", "high"]))
    def dnn_is_adjusted(self, number: int, priority: str) -> None:
        self.adjust(self.pick(self.ledger.plans, number), priority, (number % 3) * 100 * MS)

    def adjust(self, name: str, priority: str, interval_ns: int) -> None:
        utility = utility_for(priority, 100)
        self.tell(DnnAdjusted(name, priority, utility, 100 * MS, interval_ns))

    @rule(
        policy=st.sampled_from(tuple(SCHEDULERS)),
        mode=st.sampled_from(ChunkMode.values()),
        number=numbers,
    )
    def reconfigured(self, policy: str, mode: str, number: int) -> None:
        if number % 3:
            return
        name = self.policy if number % 2 else policy
        chunks = tuple(
            halves(len(stage.op_ns)) for plan in self.ledger.plans.values() for stage in plan.stages
        )
        self.tell(Reconfigured(name, mode, FRAME_NS, chunks))

    # -- what cannot happen ------------------------------------------------------------------

    @rule(number=numbers)
    def what_cannot_happen(self, number: int) -> None:
        for event in (found := impossible(self.ledger)) and [self.pick(found, number)]:
            self.refused(event)

    # -- the end -----------------------------------------------------------------------------

    def teardown(self) -> None:
        if not self.sound:  # it has failed already
            return
        self.recovers()
        self.ledger.check_ended()
        policy = self.fresh()
        policy = policy if isinstance(policy, Scheduler) else None
        records = json.loads(json.dumps(self.records))
        assert list(replay(self.config, records, policy)) == []

    def recovers(self) -> None:
        """Nothing is wrong any more, and nothing new comes: all that is in flight ends, and what
        was asked for with it."""
        ledger = self.ledger
        for processor in sorted(ledger.lost):
            self.tell(ProcessorBack(processor))
        for name in sorted(ledger.unbuilt):
            self.tell(DnnBuilt(replace(ledger.plans[name], built=True)))
        for name in tuple(ledger.plans):
            self.adjust(name, "normal", 10**15)
        end_ns = self.now_ns + LATEST_S * 1000 * MS
        while ledger.jobs or ledger.moves:
            assert self.now_ns < end_ns, ("it never ends", ledger.jobs, ledger.moves)
            self.next_frame(25)
            self.passes(8 * MS if ledger.drawing else GAP_NS)
            while ledger.moves:
                self.dnn_moved(1)
            for job in self.busy():
                if job.id in ledger.jobs and job.doing != "ready":
                    self.ends(job, 1)


def halves(ops: int) -> tuple[tuple[int, int], ...]:
    """A partition into two chunks, where there are ops for it."""
    middle = ops // 2
    return ((0, middle), (middle, ops)) if middle else ((0, ops),)


def took_ns(job: Flying, start: int, end: int) -> int:
    """What a range takes, as profiled."""
    stage = job.network
    if job.processor == GPU:
        return sum(stage.op_ns[start:end]) + stage.chunk_cost_ns
    return stage.remote_ns or 1 if job.processor == REMOTE else stage.cpu_ns
