"""Scheduling events: which jobs could start a chunk now, and the policy's choice among them."""

from __future__ import annotations

from math import inf

from heimdall.coordinator.chunking import Chunking, part_ns
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Job
from heimdall.coordinator.jobs import Jobs
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.states import FALLBACK, READY, CoordinationError
from heimdall.schedulers.base import (
    FALLBACK_ENDED,
    GAP_OPENED,
    JOB_ARRIVED,
    Assignment,
    Choice,
    Scheduler,
    View,
)
from heimdall.vocabulary.events import Action, RunChunk, Yield
from heimdall.vocabulary.processors import GPU

_MAY_PREEMPT = frozenset({JOB_ARRIVED, FALLBACK_ENDED})
_WORTH_NS = 2_000_000  # what a more urgent job must save: cutting has a price too


class Dispatcher:
    """Keeps processors busy. ``equal``: GPU chunks start without regard to rendering."""

    wake_ns = inf  # events are enough

    def __init__(
        self,
        scheduler: Scheduler,
        jobs: Jobs,
        placement: Placement,
        chunking: Chunking,
        gap: Gap,
        *,
        interval_ns: int,
        equal: bool,
    ) -> None:
        self._scheduler, self._jobs, self._placement = scheduler, jobs, placement
        self._gap, self._equal = gap, equal
        self._end_op, self._one_a_gap = chunking.end_op, chunking.one_a_gap
        self._holds_fallback, self._late_ns = chunking.holds_fallback, chunking.late_ns
        self._ends_early = chunking.ends_early and not equal
        self._view = View(
            processor=GPU,
            trigger="",
            jobs=(),
            in_flight=jobs.in_flight.values(),
            away=(),
            gap_end_ns=0,
            interval_ns=interval_ns,
            cuts_anywhere=chunking.cuts_anywhere,
        )

    def dispatch(self, trigger: str, now_ns: int, out: list[Action]) -> int:
        """A scheduling event for every idle processor; returns how often the policy was asked."""
        asked = 0
        on_gpu: list[Job] = []
        elsewhere: dict[str, list[Job]] = {}
        away: list[Job] = []
        for job in self._jobs.in_flight.values():
            if job.state is READY:
                if job.processor == GPU:
                    on_gpu.append(job)
                else:
                    elsewhere.setdefault(job.processor, []).append(job)
            elif job.state is FALLBACK:
                away.append(job)
        running, lost = self._jobs.running, self._placement.lost
        if on_gpu and running[GPU]:
            (busy,) = running[GPU]
            if trigger in _MAY_PREEMPT and busy.may_end_early and not busy.yields:
                self._preempt(busy, on_gpu, now_ns, out)
        elif on_gpu and GPU not in lost and not self._gone_on(on_gpu, now_ns, out):
            fitting = self._fitting(on_gpu, trigger, now_ns)
            if fitting:
                self._view.away = away
                asked += self._offer(GPU, fitting, trigger, now_ns, out)
        for processor, jobs in elsewhere.items():
            if processor not in lost:
                asked += self._run_whole(processor, jobs, trigger, now_ns, out)
        runnable = bool(on_gpu) or bool(running[GPU])
        if runnable is not self._gap.runnable:
            self._gap.advance(now_ns)
            self._gap.runnable = runnable
        return asked

    def _run_whole(
        self, processor: str, jobs: list[Job], trigger: str, now_ns: int, out: list[Action]
    ) -> int:
        """Fill a processor that never cuts: the system preempts on a CPU, and a server is asked for
        whole inferences."""
        asked = 0
        self._view.away = ()
        while jobs and self._jobs.has_room(processor):
            for job in jobs:
                job.end_op = job.stage_costs.ops
            asked += self._offer(processor, jobs, trigger, now_ns, out)
            offered, jobs = jobs, [job for job in jobs if job.state is READY]
            if len(jobs) == len(offered):  # the policy wants none of them there
                break
        return asked

    def _gone_on(self, jobs: list[Job], now_ns: int, out: list[Action]) -> bool:
        """Let a chunk go on whose fallback ops have run, as it is under way; whether there is one.
        Rendering keeps its turn."""
        for job in jobs:
            if job.chunk_end_op:
                if self._gap.is_open or self._equal:
                    end_op = min(job.chunk_end_op, job.stage_costs.run_end[job.next_op])
                    self._start(job, end_op, "its chunk goes on", now_ns, out)
                return True
        return False

    def _fitting(self, jobs: list[Job], trigger: str, now_ns: int) -> list[Job]:
        """The jobs that may start a GPU chunk now, each with the chunk's end proposed."""
        gap, end_op = self._gap, self._end_op
        usual_ns = gap.usual_ns
        if self._equal:  # rendering comes as it comes; a chunk is still as long as a gap
            left_ns, fresh = usual_ns, True
        elif not gap.is_open or (self._one_a_gap and not self._may_begin(trigger)):
            return []
        else:
            left_ns, fresh = gap.room(now_ns)
            fresh = fresh or (gap.chunks == 0 and left_ns >= usual_ns - self._late_ns)
        fitting = []
        for job in jobs:
            next_op = job.next_op
            job.end_op = end = end_op(job.stage_costs, next_op, left_ns, usual_ns, fresh)
            if end > next_op:
                fitting.append(job)
        return fitting

    def _may_begin(self, trigger: str) -> bool:
        """Where a gap takes one chunk: whether that is still to come, or away on the CPU."""
        if not self._gap.has_its_chunk(trigger == GAP_OPENED):
            return True
        return any(job.chunk_end_op for job in self._jobs.in_flight.values())

    def _preempt(self, busy: Job, jobs: list[Job], now_ns: int, out: list[Action]) -> None:
        """Let the chunk that runs end early for a more urgent job that fits behind it, if that
        saves it some of its wait."""
        gap = self._gap
        free_ns = now_ns + 2 * part_ns(busy.stage_costs.chunk_cost_ns)  # two have been handed over
        if not gap.is_open or busy.chunk_end_ns - free_ns <= _WORTH_NS:
            return
        left_ns = gap.next_ns(now_ns) - free_ns
        for job in jobs:
            if not self._scheduler.preempts(job, busy):
                continue
            next_op = job.next_op
            if self._end_op(job.stage_costs, next_op, left_ns, gap.usual_ns, False) > next_op:
                busy.yields = True
                out.append(Yield(busy.id, busy.dnn, f"{job.dnn} is more urgent"))
                return

    def _offer(
        self, processor: str, jobs: list[Job], trigger: str, now_ns: int, out: list[Action]
    ) -> bool:
        """Let the policy choose among ``jobs``, all of which can start. Whether it was asked."""
        scheduler = self._scheduler
        if processor not in scheduler.processors:
            oldest = min(jobs, key=lambda job: (job.enqueued_ns, job.id))
            self._start(oldest, oldest.end_op, "first come", now_ns, out)
            return False
        if trigger not in scheduler.triggers:
            return False
        view, gap = self._view, self._gap
        view.processor, view.trigger, view.jobs = processor, trigger, jobs
        view.gap_end_ns = gap.next_ns(now_ns)
        choice = scheduler.select(view, now_ns)
        if choice is not None:
            self._apply(choice, now_ns, out)
        return True

    def _apply(self, choice: Choice, now_ns: int, out: list[Action]) -> None:
        for chosen in choice.assignments:
            job = self._jobs.in_flight.get(chosen.job)
            if job is None or job.state is not READY:
                raise self._wrong(chosen, "which could not run: choose from view.jobs")
            if chosen.group or chosen.stage or chosen.ops:
                raise self._wrong(chosen, "together with others, which takes a QueuePolicy")
            if job.processor != chosen.processor or not self._jobs.has_room(job.processor):
                raise self._wrong(chosen, f"which cannot run on {chosen.processor!r} now")
            if chosen.variant and not job.vary(chosen.variant):
                raise self._wrong(chosen, f"as {chosen.variant!r}, which it cannot become")
            costs = job.stage_costs
            if costs.fallback[job.next_op] and job.processor == GPU:  # of the variant's head
                self._jobs.ready(job, now_ns, out)
                continue
            last = costs.run_end[job.next_op] if job.processor == GPU else costs.ops
            if not job.next_op < chosen.end_op <= last:
                may = f"a chunk from op {job.next_op} may end at {last} at most"
                raise self._wrong(chosen, f"up to op {chosen.end_op}; {may}")
            self._start(job, chosen.end_op, choice.reason, now_ns, out)

    def _wrong(self, chosen: Assignment, why: str) -> CoordinationError:
        return CoordinationError(
            f"scheduler {self._scheduler.name!r} chose job {chosen.job}, {why}"
        )

    def _start(self, job: Job, end_op: int, reason: str, now_ns: int, out: list[Action]) -> None:
        job.happened(RunChunk)
        processor, next_op, until_ns = job.processor, job.next_op, 0
        self._jobs.running[processor].append(job)
        job.running_end_op = end_op
        job.may_end_early, job.yields = self._ends_early and processor == GPU, False
        goes_on = job.chunk_end_op > 0
        job.chunks += not goes_on
        job.owner.last_reason = reason
        if processor == GPU:
            self._gap.chunk_started(now_ns, goes_on)
            if self._holds_fallback and not goes_on:
                job.chunk_end_op = job.stage_costs.chunk_end[next_op]
            expected_ns = job.stage_costs.gpu_ns(next_op, end_op)
            job.chunk_end_ns = now_ns + expected_ns
            if job.may_end_early:
                until_ns = self._gap.end_ns
        else:
            expected_ns = job.stage_costs.cpu_ns(next_op, end_op)
        out.append(
            RunChunk(
                job.id, job.dnn, job.stage, job.task, processor, next_op, end_op,
                expected_ns, reason, until_ns,
            )
        )  # fmt: skip
