"""What a coordinator has been told and has answered, kept by its documentation alone, and what must
hold of it: at most a chunk a lane, no job lost or run twice, no op skipped or repeated."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heimdall.coordinator.snapshot import Snapshot
from heimdall.schedulers import Greedy, Scheduler
from heimdall.vocabulary.events import (
    NO_JOB,
    Action,
    ChunkFinished,
    DnnAdded,
    DnnAdjusted,
    DnnBuilt,
    DnnMoved,
    DnnRemoved,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    FrameRendered,
    InferenceRequested,
    InputReady,
    JobFailed,
    Move,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    Reconfigured,
    RenderingStopped,
    RenderStarted,
    RunChunk,
    RunFallback,
    RunTogether,
    Yield,
)
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import CPU, GPU, PROCESSORS, REMOTE, Processor

# Reasons of moves that are not the offload step's.
_NO_STEP = ("lost", "keeps failing", "built", "is back")
_OWN_TURN = ("its chunk goes on", "is back from the CPU")  # reasons of chunks outside of the rule


@dataclass
class Flying:
    """A job in flight. ``doing``: the state it must be in; ``done``: the op ranges of its current
    task that have run; ``again``: it may begin its task again, as its processor was lost."""

    id: int
    dnn: str
    plan: DnnPlan
    request: int | None
    constraint_ns: int
    since_ns: int
    doing: str = "preparing"
    stage: int = 0
    task: int = 0
    tasks: int = 1
    done: list[tuple[int, int]] = field(default_factory=list)
    span: tuple[int, int] = (0, 0)  # of what runs
    early: bool = False  # it may end before its end
    processor: str = GPU
    bound: str = ""
    again: bool = False
    enqueued: bool = False
    asked: int = 0  # when it was given what it does, counted

    @property
    def network(self) -> StagePlan:
        return self.plan.stages[self.stage]

    @property
    def deadline_ns(self) -> int:
        return self.since_ns + self.constraint_ns

    def covers(self) -> bool:
        """Whether all of its task has run: all ops, or those of a variant."""
        ran = {op for start, end in self.done for op in range(start, end)}
        ways = [exit.ranges for exit in self.network.exits] or [((0, len(self.network.op_ns)),)]
        return any(ran >= {op for span in way for op in range(*span)} for way in ways)

    def begin_task(self, stage: int, task: int) -> None:
        self.stage, self.task, self.done = stage, task, []


class Ledger:
    """``jobs`` in flight by number; ``moves`` under way; ``late``: what may still be told of jobs
    that have been dropped. ``policies``: those that may decide, by name."""

    def __init__(
        self,
        plans: Sequence[DnnPlan],
        processors: Sequence[Processor],
        config: Any,
        policies: Mapping[str, type[Scheduler]],
    ):
        self.policies = policies
        self.plans = {plan.name: plan for plan in plans}
        self.where = {plan.name: GPU if plan.built else CPU for plan in plans}
        self.lanes = {each.id: each.lanes for each in processors}
        self.equal = config["render_priority"] == "equal"
        self.interval_ns = config["offload_interval_ns"]
        self.replaces = config["admission"] == "replace"
        self.scheduler: str = config["scheduler"]
        self.jobs: dict[int, Flying] = {}
        self.moves: list[Move] = []
        self.late: list[Event] = []
        self.late_of_lost: list[ChunkFinished] = []
        self.finished: deque[int] = deque(maxlen=50)
        self.undecoded: set[int] = set()  # have finished, and failed then
        self.unbuilt = {plan.name for plan in plans if not plan.built}
        self.gone: set[str] = set()
        self.lost: set[str] = set()
        self.drawing, self.gap_end_ns = True, 0
        self.together: set[str] = set()  # processors all of whose lanes are taken
        self.adjusted = {plan.name: plan.constraint_ns for plan in plans}
        self._begun: set[int] = set()
        self._calls = 0
        self._asked: Counter[int] = Counter()
        self._ended: Counter[int] = Counter()
        self._moved: defaultdict[str, list[int]] = defaultdict(list)

    # -- events ----------------------------------------------------------------------------

    def saw(
        self, now_ns: int, event: Event | None, actions: Sequence[Action], before: Snapshot
    ) -> None:
        """Take note of one call, and check its answer."""
        waiting = [job for job in self.jobs.values() if job.doing == "ready"]
        idle = not self.on(GPU)
        away = any(job.doing == "fallback" for job in self.jobs.values())
        if event is not None:
            getattr(self, _name_of(event), lambda *_: None)(event, now_ns)
        self._calls += 1
        for action in actions:
            getattr(self, _name_of(action))(action, now_ns)
            if (job := self.jobs.get(getattr(action, "job", NO_JOB))) is not None:
                job.asked = self._calls
        if isinstance(event, DnnRemoved):
            self._forget(event.dnn)
        if isinstance(event, FrameRendered) and idle and not away:
            self._check_turn(waiting, actions, now_ns, before)
        if isinstance(event, JobFailed):
            assert event.job not in self.jobs, "a job that has failed goes on"

    def _frame_rendered(self, event: FrameRendered, now_ns: int) -> None:
        self.drawing, self.gap_end_ns = False, event.gap_end_ns

    def _render_started(self, event: RenderStarted, now_ns: int) -> None:
        self.drawing = True

    def _rendering_stopped(self, event: RenderingStopped, now_ns: int) -> None:
        self.drawing = False

    def _inference_requested(self, event: InferenceRequested, now_ns: int) -> None:
        if event.request is not None:
            self._asked[event.request] += 1
            self._slo_ns = event.slo_ns

    def _input_ready(self, event: InputReady, now_ns: int) -> None:
        job = self.jobs.get(event.job)
        if job is None:
            return
        assert job.doing == "preparing"
        job.tasks = event.tasks
        job.begin_task(job.stage, 0)
        if job.stage == 0 and not job.enqueued:
            job.enqueued = True
            if job.request is None:
                job.since_ns = now_ns
        if job.stage == 0:
            job.bound = job.processor = self.where[job.dnn]
        self._ready(job)

    def _ready(self, job: Flying) -> None:
        """It goes on where its DNN is by now, if it has lost its processor."""
        job.doing = "ready"
        if not self.binds:
            job.bound = ""
        elif job.bound in ("", *self.lost):
            job.bound = self.where[job.dnn]

    def _chunk_finished(self, event: ChunkFinished, now_ns: int) -> None:
        job = self.jobs.get(event.job)
        if job is None or job.doing != "running" or job.processor != event.processor:
            return
        job.done.append((event.start_op, event.end_op))
        self._ready(job)
        if not self.on(event.processor):
            self.together.discard(event.processor)

    def _fallback_finished(self, event: FallbackFinished, now_ns: int) -> None:
        job = self.jobs.get(event.job)
        if job is not None:
            job.done.append(job.span)
            self._ready(job)

    def _job_failed(self, event: JobFailed, now_ns: int) -> None:
        if event.job not in self.jobs:
            self.undecoded.add(event.job)

    def _dnn_moved(self, event: DnnMoved, now_ns: int) -> None:
        if event.dnn in self.where:
            self.where[event.dnn] = event.processor
            self._moved[event.dnn].append(now_ns)
            for job in self.jobs.values():
                if job.dnn == event.dnn and job.doing == "ready":
                    self._ready(job)

    def _processor_lost(self, event: ProcessorLost, now_ns: int) -> None:
        self.lost.add(event.processor)
        for job in self.on(event.processor):
            self.late_of_lost.append(ChunkFinished(job.id, event.processor, *job.span, 1_000_000))
            job.doing = "ready"
        for job in self.jobs.values():
            job.again = True
        self.together.discard(event.processor)

    def _processor_back(self, event: ProcessorBack, now_ns: int) -> None:
        self.lost.discard(event.processor)
        self._moved.clear()

    def _reconfigured(self, event: Reconfigured, now_ns: int) -> None:
        self.scheduler = event.scheduler
        for job in self.jobs.values():
            job.again = True
            if job.doing == "ready":
                self._ready(job)

    def _dnn_added(self, event: DnnAdded, now_ns: int) -> None:
        name = event.plan.name
        self.plans[name], self.adjusted[name] = event.plan, event.plan.constraint_ns
        self.where[name] = GPU if event.plan.built else CPU
        self.gone.discard(name)
        if not event.plan.built:
            self.unbuilt.add(name)

    def _dnn_adjusted(self, event: DnnAdjusted, now_ns: int) -> None:
        self.adjusted[event.dnn] = event.constraint_ns

    def _dnn_built(self, event: DnnBuilt, now_ns: int) -> None:
        if event.plan.name in self.plans:
            self.plans[event.plan.name] = event.plan
            self.unbuilt.discard(event.plan.name)

    def _forget(self, name: str) -> None:
        del self.plans[name], self.where[name]
        self.unbuilt.discard(name)
        self.gone.add(name)
        self._moved.pop(name, None)
        self.moves = [each for each in self.moves if each.dnn != name]
        assert not [job for job in self.jobs.values() if job.dnn == name], "its job goes on"

    # -- actions ---------------------------------------------------------------------------

    def _prepare(self, action: Prepare, now_ns: int) -> None:
        job = self.jobs.get(action.job)
        if job is None:
            assert action.job not in self._begun, "a job that has ended begins again"
            assert action.stage == 0
            plan = self.plans[action.dnn]
            if not plan.queued:
                assert not [o for o in self.jobs.values() if o.dnn == action.dnn], "one in flight"
            self._begun.add(action.job)
            constraint_ns = self.adjusted[action.dnn]
            if action.request is not None:
                constraint_ns = self._slo_ns or constraint_ns
            self.jobs[action.job] = Flying(
                action.job, action.dnn, plan, action.request, constraint_ns, now_ns
            )
            return
        assert job.doing == "ready"
        if action.anew:
            job.begin_task(0, 0)
        else:
            assert job.task == job.tasks - 1
            assert job.covers()
            assert action.stage == job.stage + 1
            job.begin_task(action.stage, 0)
        job.doing = "preparing"

    def _run_chunk(self, action: RunChunk, now_ns: int) -> None:
        self._starts(action.job, action.dnn, action.processor, action.stage, action.task)
        job, span = self.jobs[action.job], (action.start_op, action.end_op)
        self._check_ops(job, action.task, (span,))
        if action.processor == GPU and not job.network.on:
            assert not job.network.fallback[span[0]], "the GPU lacks the first op of a chunk"
            held = any(job.network.fallback[slice(*span)])
            assert not held or action.until_ns or self.equal, "the GPU lacks an op of a chunk"
        assert action.processor not in self.together, "beside what needs all lanes"
        assert len(self.on(action.processor)) < self.lanes[action.processor], "a chunk too many"
        job.doing, job.processor, job.early = "running", action.processor, action.until_ns > 0
        job.span = span

    def _run_together(self, action: RunTogether, now_ns: int) -> None:
        assert not self.on(action.processor)
        for groups in action.stages:
            assert len(groups) <= self.lanes[action.processor], "a chunk too many"
        ops: dict[int, list[tuple[int, int]]] = {}
        for group in (group for groups in action.stages for group in groups):
            ops.setdefault(group.job, []).extend(group.ops)
            self._starts(group.job, group.dnn, action.processor, group.stage, group.task)
        for id, start, end in action.parts:
            job = self.jobs[id]
            self._check_ops(job, job.task, sorted(ops[id]))
            job.doing, job.processor, job.span, job.early = (
                *("running", action.processor, (start, end)),
                False,
            )
        self.together.add(action.processor)

    def _run_fallback(self, action: RunFallback, now_ns: int) -> None:
        job, span = self.jobs[action.job], (action.start_op, action.end_op)
        assert (job.doing, job.stage) == ("ready", action.stage)
        self._check_ops(job, action.task, (span,))
        assert all(job.network.fallback[slice(*span)])
        job.doing, job.span = "fallback", span

    def _yield(self, action: Yield, now_ns: int) -> None:
        job = self.jobs[action.job]
        assert (job.doing, job.processor, job.early) == ("running", GPU, True)

    def _move(self, action: Move, now_ns: int) -> None:
        self.moves.append(action)
        assert action.processor in places(self.plans[action.dnn])
        assert action.processor not in self.lost, "to where nothing runs"
        if not any(word in action.reason for word in _NO_STEP):
            self._check_calm(action.dnn, now_ns)

    def _finish(self, action: Finish, now_ns: int) -> None:
        job = self.jobs.pop(action.job)
        assert (job.doing, job.request) == ("ready", action.request)
        if job.tasks:
            assert job.task == job.tasks - 1
            assert job.covers(), "ops were left out"
            assert job.stage == len(job.plan.stages) - 1
        self.finished.append(job.id)
        self._request_ended(action.request)

    def _drop(self, action: Drop, now_ns: int) -> None:
        self._request_ended(action.request)
        if action.job == NO_JOB:
            return
        job = self.jobs.pop(action.job)
        if job.doing == "preparing":
            self.late.append(InputReady(job.id))
        elif job.doing == "running":
            self.late.append(ChunkFinished(job.id, job.processor, *job.span, 1_000_000))
            if not self.on(job.processor):
                self.together.discard(job.processor)
        elif job.doing == "fallback":
            self.late.append(FallbackFinished(job.id, job.span[1], 1_000_000))

    # -- what must hold --------------------------------------------------------------------

    def on(self, processor: str) -> list[Flying]:
        """The jobs that run there."""
        running = (job for job in self.jobs.values() if job.doing == "running")
        return [job for job in running if job.processor == processor]

    def check(self, seen: Snapshot) -> None:
        """What the coordinator shows is what it has said."""
        assert seen.dnns.keys() == self.plans.keys()
        for name, status in seen.dnns.items():
            assert status.processor == self.where[name]
            if not self.plans[name].queued:
                doing = [job.doing for job in self.jobs.values() if job.dnn == name]
                assert status.state == (doing[0] if doing else "idle")
        if self.binds:
            for job in self.jobs.values():
                if job.doing == "ready" and job.bound not in (GPU, "", *self.lost):
                    there = len(self.on(job.bound))
                    assert there >= self.lanes[job.bound], "waits for nothing"

    def check_ended(self) -> None:
        """Every request came to exactly one end."""
        assert self._asked == self._ended

    @property
    def binds(self) -> bool:
        return self.policies[self.scheduler].binds

    def _check_turn(
        self, waiting: Sequence[Flying], actions: Sequence[Action], now_ns: int, before: Snapshot
    ) -> None:
        """A gap that is whole has work in it while there is any, and who is late by its whole
        constraint once more has it before whoever has to end later: so nobody starves."""
        policy = self.policies[self.scheduler]
        if self.replaces or GPU in self.lost or not issubclass(policy, Greedy):
            return
        mine = [job for job in waiting if job.bound == GPU and job.id in self.jobs]
        if not mine or self.gap_end_ns - now_ns < before.gap.usual_ns:
            return
        started = [a for a in actions if isinstance(a, RunChunk) and a.processor == GPU]
        assert started, "a whole gap stays empty"
        if any(word in started[0].reason for word in _OWN_TURN):
            return
        chosen = self.jobs[started[0].job].deadline_ns
        for job in mine:
            if now_ns > job.deadline_ns + job.constraint_ns:
                assert chosen <= job.deadline_ns, "who has waited for too long still waits"

    def _check_calm(self, dnn: str, now_ns: int) -> None:
        """What has moved stays for two intervals, and soon after that for four."""
        moved = self._moved[dnn]
        if moved:
            soon = len(moved) > 1 and moved[-1] - moved[-2] < 10 * self.interval_ns
            least_ns = (4 if soon else 2) * self.interval_ns
            assert now_ns - moved[-1] >= least_ns, "it goes to and fro"

    def _starts(self, id: int, dnn: str, processor: str, stage: int, task: int) -> None:
        job = self.jobs[id]
        assert (job.dnn, job.stage) == (dnn, stage)
        assert job.doing == "ready"
        assert task in (job.task, job.task + 1)
        assert processor not in self.lost
        assert not (processor == GPU and self.drawing and not self.equal), "rendering comes first"

    def _check_ops(self, job: Flying, task: int, spans: Sequence[tuple[int, int]]) -> None:
        """These ops come next."""
        ops = len(job.network.op_ns)
        if task == job.task + 1:
            assert job.covers()
            job.begin_task(job.stage, task)
        assert task == job.task < job.tasks
        at = job.done[-1][1] if job.done else 0
        if spans[0][0] == 0 and at > 0:
            assert job.again, "ops run twice"
            job.done.clear()
            at = 0
        job.again &= bool(job.done)
        for start, end in spans:
            assert start == at or (job.network.exits and start > at), "ops are skipped or repeated"
            assert start < end <= ops
            at = end

    def _request_ended(self, request: int | None) -> None:
        if request is not None:
            self._ended[request] += 1
            assert self._ended[request] == self._asked[request] == 1, "one end for each request"


def _name_of(value: Event | Action) -> str:
    """``_frame_rendered`` of a FrameRendered."""
    name = type(value).__name__
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def places(plan: DnnPlan) -> tuple[str, ...]:
    """The processors a DNN may be loaded on."""
    there = all(stage.remote_ns is not None for stage in plan.stages)
    return (*PROCESSORS, REMOTE) if there else PROCESSORS
