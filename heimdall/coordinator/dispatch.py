"""Scheduling events: which jobs could start a chunk now, and the policy's choice among them."""

from __future__ import annotations

from collections.abc import Mapping

from heimdall.coordinator.chunking import Chunking
from heimdall.coordinator.dnn import Dnn
from heimdall.coordinator.events import GPU, Action, RunChunk
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import CoordinationError, Job, State
from heimdall.coordinator.jobs import Jobs
from heimdall.coordinator.placement import PROCESSORS, Placement
from heimdall.schedulers.base import GAP_OPENED, Assignment, Choice, Scheduler, View


class Dispatcher:
    """Keeps processors busy. ``equal``: GPU chunks start without regard to rendering.
    ``decisions`` counts calls of the scheduler."""

    def __init__(
        self,
        scheduler: Scheduler,
        dnns: Mapping[str, Dnn],
        jobs: Jobs,
        placement: Placement,
        chunking: Chunking,
        gap: Gap,
        *,
        interval_ns: int,
        equal: bool,
    ) -> None:
        self.decisions = 0
        self._scheduler, self._dnns, self._jobs = scheduler, dnns, jobs
        self._placement, self._chunking, self._gap = placement, chunking, gap
        self._interval_ns, self._equal = interval_ns, equal

    def dispatch(self, trigger: str, now_ns: int, out: list[Action]) -> None:
        """A scheduling event for every idle processor."""
        ready: dict[str, list[Job]] = {processor: [] for processor in PROCESSORS}
        for job in self._jobs.in_flight.values():
            if job.state is State.READY:
                ready[job.processor].append(job)
        for processor, jobs in ready.items():
            if (
                jobs
                and self._jobs.running[processor] is None
                and processor not in self._placement.lost
            ):
                self._offer(processor, jobs, trigger, now_ns, out)
        self._gap.runnable = self._jobs.running[GPU] is not None or bool(ready[GPU])

    def _offer(
        self, processor: str, jobs: list[Job], trigger: str, now_ns: int, out: list[Action]
    ) -> None:
        """Let the policy choose among ``jobs``; it is asked only if one of them can start."""
        if processor == GPU:
            jobs = self._fitting(jobs, trigger, now_ns)
        else:
            for job in jobs:  # the system preempts on a CPU: no need to cut
                job.end_op = job.owner.costs[job.stage].ops
        if not jobs:
            return
        if processor not in self._scheduler.processors:
            oldest = min(jobs, key=lambda job: (job.enqueued_ns, job.id))
            self._start(oldest, oldest.end_op, "first come", now_ns, out)
            return
        if trigger not in self._scheduler.triggers:
            return
        self.decisions += 1
        choice = self._scheduler.select(self._view(processor, jobs, trigger, now_ns), now_ns)
        if choice is not None:
            self._apply(choice, now_ns, out)

    def _fitting(self, jobs: list[Job], trigger: str, now_ns: int) -> list[Job]:
        """The jobs that may start a GPU chunk now, each with the chunk's end proposed."""
        gap, end_op = self._gap, self._chunking.end_op
        if self._equal:  # rendering comes as it comes; a chunk is still as long as a gap
            left_ns, fresh = gap.usual_ns, True
        elif gap.is_open and self._chunking.may_start(gap, trigger == GAP_OPENED):
            left_ns, fresh = gap.left_ns(now_ns), gap.fresh(now_ns)
        else:
            return []
        fitting = []
        for job in jobs:
            costs = job.owner.costs[job.stage]
            job.end_op = end_op(costs, job.next_op, left_ns, gap.usual_ns, fresh)
            if job.end_op > job.next_op:
                fitting.append(job)
        return fitting

    def _view(self, processor: str, jobs: list[Job], trigger: str, now_ns: int) -> View:
        return View(
            processor=processor,
            trigger=trigger,
            jobs=jobs,
            in_flight=self._jobs.in_flight.values(),
            waiting={name: dnn.pending for name, dnn in self._dnns.items() if dnn.pending},
            gap_end_ns=max(self._gap.end_ns, now_ns),
            gap_ns=self._gap.usual_ns,
            interval_ns=self._interval_ns,
        )

    def _apply(self, choice: Choice, now_ns: int, out: list[Action]) -> None:
        for chosen in choice.assignments:
            job = self._jobs.in_flight.get(chosen.job)
            if job is None or job.state is not State.READY:
                raise self._wrong(chosen, "which could not run: choose from view.jobs")
            if job.processor != chosen.processor or self._jobs.running[job.processor] is not None:
                raise self._wrong(chosen, f"which cannot run on {chosen.processor!r} now")
            costs = job.owner.costs[job.stage]
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
        job.to(State.RUNNING, "RunChunk")
        processor, costs = job.processor, job.owner.costs[job.stage]
        self._jobs.running[processor] = job
        job.running_end_op = end_op
        job.chunks += 1
        job.owner.last_reason = reason
        if processor == GPU:
            self._gap.chunk_started(now_ns)
        expected_ns = costs.expected_ns(processor, job.next_op, end_op)
        out.append(
            RunChunk(
                job.id, job.dnn, job.stage, job.task, processor, job.next_op, end_op,
                expected_ns, reason,
            )
        )  # fmt: skip
