"""Scheduling events where one queue serves all processors: the counterpart of ``dispatch``.

The queue holds every job from when its input is ready to when its last op has run. Where a
processor renders, the window between two frames is kept here, whatever a policy chooses: a range
that does not fit what is left of the gap is shortened to what does, or waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from heimdall.coordinator import together
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Job
from heimdall.coordinator.jobs import Jobs
from heimdall.coordinator.placement import Placement
from heimdall.coordinator.states import READY, RUNNING, CoordinationError
from heimdall.schedulers.base import Assignment, Choice
from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.queue import QueuePolicy, QueueView
from heimdall.vocabulary.events import Action, Drop, RunChunk, RunTogether
from heimdall.vocabulary.processors import Processor


class QueueDispatcher:
    """Keeps processors busy with the jobs of one queue."""

    def __init__(
        self,
        policy: QueuePolicy,
        jobs: Jobs,
        placement: Placement,
        gap: Gap,
        processors: Sequence[Processor],
        *,
        interval_ns: int,
        equal: bool,
    ) -> None:
        self._policy, self._jobs, self._placement, self._gap = policy, jobs, placement, gap
        self._lanes = [(each.id, each.lanes) for each in processors]
        self._renderer = next((each.id for each in processors if each.renders), "")
        self._drops = type(policy).hopeless is not QueuePolicy.hopeless
        self._equal, self._interval_ns = equal, interval_ns
        self._queue: list[Job] = []
        self._held: set[str] = set()  # processors on which something runs together
        jobs.changed = list(jobs.in_flight.values())
        for job in jobs.changed:
            job.placed = None

    def dispatch(self, trigger: str, now_ns: int, out: list[Action]) -> int:
        """A scheduling event for all processors; returns how often the policy was asked."""
        self._policy.wake_ns = inf
        if self._jobs.changed:
            self._renew(now_ns)
        waiting = [job for job in self._queue if job.state is READY]
        if self._drops and waiting:
            waiting = self._worth_it(waiting, now_ns, out)
        self._account(now_ns, bool(waiting))
        if not waiting or not (idle := self._idle()):
            return 0
        free_ns = self._free_ns(now_ns)
        choice = self._policy.select(
            QueueView(
                queue=waiting,
                running=[job for job in self._queue if job.state is RUNNING],
                processors=list(free_ns),
                idle=idle,
                free_ns=free_ns,
                interval_ns=self._interval_ns,
                handoff_ns=self._jobs.handoff_ns,
            ),
            now_ns,
        )
        if choice is not None and choice.together:
            self._apply_together(choice, idle, now_ns, out)
        elif choice is not None:
            for assignment in choice.assignments:
                self._apply(assignment, choice.reason, idle, now_ns, out)
        return 1

    @property
    def wake_ns(self) -> float:
        """When the policy wants to be asked again, though nothing has happened."""
        return self._policy.wake_ns

    # -- the queue -------------------------------------------------------------------------

    def _renew(self, now_ns: int) -> None:
        """Take out those that have ended, and place those that are ready."""
        queue, ready = self._queue, []
        for job in self._jobs.changed:
            if job.state is READY:
                ready.append(job)
            elif job.id not in self._jobs.in_flight and job.placed is not None:
                queue.remove(job)
        self._jobs.changed.clear()
        for job in ready:
            at = job.stage, job.task, job.next_op
            if job.placed == at:
                continue
            again, job.placed = job.placed is not None, at
            if again and not self._policy.requeues:
                continue
            if again:
                queue.remove(job)
            index = self._policy.place(job, queue, now_ns)
            if not 0 <= index <= len(queue):
                raise CoordinationError(
                    f"scheduler {self._policy.name!r} placed job {job.id} at {index} in a queue "
                    f"of {len(queue)}"
                )
            queue.insert(index, job)

    def _worth_it(self, waiting: list[Job], now_ns: int, out: list[Action]) -> list[Job]:
        """Those that are not hopeless; the others are dropped."""
        hopeless, kept = self._policy.hopeless, []
        for job in waiting:
            if reason := hopeless(job, now_ns):
                self._jobs.drop(job, Drop, reason, now_ns, out)
            else:
                kept.append(job)
        return kept

    # -- processors ------------------------------------------------------------------------

    def _idle(self) -> list[str]:
        """A processor's id for each free lane of it."""
        running, lost = self._jobs.running, self._placement.lost
        drawing = "" if self._equal or self._gap.is_open else self._renderer
        idle: list[str] = []
        for id, lanes in self._lanes:
            free = lanes - len(running[id])
            if id in self._held:  # what runs together has all lanes until all of it has ended
                if running[id]:
                    continue
                self._held.remove(id)
            if free > 0 and id not in lost and id != drawing:
                idle += [id] * free
        return idle

    def _free_ns(self, now_ns: int) -> dict[str, int]:
        """By processor that works: when it is expected to have a free lane."""
        running, lost = self._jobs.running, self._placement.lost
        free_ns: dict[str, int] = {}
        for id, lanes in self._lanes:
            if id not in lost:
                busy = running[id]
                full = len(busy) >= lanes or (bool(busy) and id in self._held)
                end_ns = min([job.chunk_end_ns for job in busy]) if full else 0
                free_ns[id] = end_ns if end_ns > now_ns else now_ns
        return free_ns

    def _account(self, now_ns: int, waiting: bool) -> None:
        runnable = waiting or bool(self._jobs.running.get(self._renderer))
        if runnable is not self._gap.runnable:
            self._gap.advance(now_ns)
            self._gap.runnable = runnable

    # -- choices ---------------------------------------------------------------------------

    def _apply(
        self,
        chosen: Assignment,
        reason: str,
        idle: list[str],
        now_ns: int,
        out: list[Action],
    ) -> None:
        job = self._ready(chosen)
        if chosen.processor not in idle:
            raise self._wrong(chosen, f"but {chosen.processor!r} has no free lane")
        costs = job.stage_costs
        if chosen.variant and not job.vary(chosen.variant):
            raise self._wrong(chosen, f"as {chosen.variant!r}, which it cannot become")
        start, end = job.next_op, chosen.end_op
        if costs.ways and end > start:
            end = self._before_head(costs, chosen.processor, start, end)
        there = start < end <= costs.ops
        expected_ns = costs.on_ns(chosen.processor, start, end) if there else None
        if expected_ns is None:
            raise self._wrong(
                chosen, f"whose ops {start}..{end} cannot run on {chosen.processor!r}"
            )
        if chosen.processor == self._renderer:
            end = self._fitting(costs, start, end, now_ns)
            if end == start:
                return
            expected_ns = costs.on_ns(chosen.processor, start, end) or 0
        idle.remove(chosen.processor)
        self._start(job, end, chosen.processor, expected_ns, reason, now_ns, out)

    @staticmethod
    def _before_head(costs: StageCosts, processor: str, start: int, end: int) -> int:
        """Ops ``[start, end)`` without the head of an exit, where the processor cuts networks."""
        ranges, run_end = costs.on(processor), costs.run_end
        return min(end, run_end[start]) if ranges is None or ranges.cuts else end

    def _ready(self, chosen: Assignment) -> Job:
        job = self._jobs.in_flight.get(chosen.job)
        if job is None or job.state is not READY:
            raise self._wrong(chosen, "which could not run: choose from view.queue")
        return job

    def _apply_together(
        self, choice: Choice, idle: list[str], now_ns: int, out: list[Action]
    ) -> None:
        """Start all of a choice at once, on one processor. Where that renders, it waits for a gap
        that has room for it, or begins one if none ever has."""
        chosen = [(each, self._ready(each)) for each in choice.assignments]
        processor = choice.assignments[0].processor
        stages, lanes = together.stages_of(chosen), self._jobs.capacity.get(processor, 0)
        together.check_lanes(processor, lanes, stages)
        jobs = {job.id: job for _, job in chosen}
        for each, _ in chosen:
            if each.processor != processor or idle.count(processor) < lanes:
                raise self._wrong(each, f"together with others: all need {processor!r}, idle")
        longest_ns = together.longest_ns(processor, stages, jobs)
        expected_ns = choice.expected_ns or longest_ns
        gap = self._gap
        if processor == self._renderer and not (self._equal or gap.endless):
            left_ns, fresh = gap.room(now_ns)
            if expected_ns > left_ns and not (fresh and expected_ns > gap.usual_ns):
                return
        action = RunTogether(processor, stages, expected_ns, choice.reason)
        for id, _, end_op in action.parts:
            job = jobs[id]
            job.happened(RunTogether)
            job.processor, job.running_end_op = processor, end_op
            job.chunks, job.together, job.may_end_early = job.chunks + 1, True, False
            job.owner.last_reason = choice.reason
            job.chunk_end_ns = now_ns + expected_ns
            self._jobs.running[processor].append(job)
        self._held.add(processor)
        if processor == self._renderer:
            gap.chunk_started(now_ns)
        out.append(action)

    def _fitting(self, costs: StageCosts, start: int, end: int, now_ns: int) -> int:
        """The part of ops ``[start, end)`` that fits the gap; an op longer than any gap begins with
        one, and makes that frame late."""
        gap, on_ns, renderer = self._gap, costs.on_ns, self._renderer
        if self._equal or gap.endless:
            return end
        left_ns, fresh = gap.room(now_ns)
        low, high = start, end
        while low < high:  # the longest that fits
            middle = (low + high + 1) // 2
            if (on_ns(renderer, start, middle) or 0) <= left_ns:
                low = middle
            else:
                high = middle - 1
        if low == start and fresh and (on_ns(renderer, start, start + 1) or 0) > gap.usual_ns:
            return start + 1
        return low

    def _start(
        self,
        job: Job,
        end_op: int,
        processor: str,
        expected_ns: int,
        reason: str,
        now_ns: int,
        out: list[Action],
    ) -> None:
        job.happened(RunChunk)
        job.processor, job.running_end_op, until_ns = processor, end_op, 0
        job.chunks += 1
        job.together = False
        job.owner.last_reason = reason
        self._jobs.running[processor].append(job)
        job.chunk_begin_ns, job.chunk_end_ns = now_ns, now_ns + expected_ns
        job.may_end_early = processor == self._renderer and not (self._equal or self._gap.endless)
        if processor == self._renderer:
            self._gap.chunk_started(now_ns)
            until_ns = self._gap.end_ns if job.may_end_early else 0
        out.append(
            RunChunk(
                job.id, job.dnn, job.stage, job.task, processor, job.next_op, end_op,
                expected_ns, reason, until_ns,
            )
        )  # fmt: skip

    def _wrong(self, chosen: Assignment, why: str) -> CoordinationError:
        return CoordinationError(f"scheduler {self._policy.name!r} chose job {chosen.job}, {why}")
