"""Pantheon (MobiSys '24, section 3.1): earliest deadline first, chunk by chunk, with early exits
where a deadline would be missed."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from heimdall.lab.policies.real_time import LOW, RealTime, real_time
from heimdall.schedulers.base import JobView, View


class EdfExits(RealTime):
    """The queue is refreshed when a request has come: every job is to end as the largest variant it
    still may; then, deadline by deadline, when each would be done is summed up (Eq. 2), and where
    that is too late the job or one before it takes its next smaller variant, whichever costs least
    accuracy against the whole network, until it is in time (Eq. 1, steps 1-3). One that cannot be
    in time whatever the others do is put behind those that can. Beyond the paper, the queue is
    refreshed as well when what has run took so much longer than expected that a job which was to be
    in time would not be.

    A job that was dispatched cannot be chosen again (section 3.1.1's "order inconsistency"): one
    thread decides, between the end of a chunk and the start of the next, from what has run by then.

    ``switches``: a job that has begun may take another variant; ``exits``: any may.
    """

    name = "edf-exits"
    reason = "earliest deadline"
    partition = "critical"
    whole_networks = False
    exits = switches = True

    def __init__(self) -> None:
        self._came = False  # a request, since the queue was refreshed
        self._variants: dict[int, str] = {}  # by job: another than it is
        self._late: set[int] = set()  # jobs that cannot be in time

    def rank(self, job: JobView) -> int:
        return job.deadline_ns

    def variant(self, job: JobView) -> str:
        chosen = self._variants.get(job.id, "")
        return chosen if chosen in job.variants else ""  # its next network may have others

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        self._came = True
        return super().place(job, queue, now_ns)

    def order(self, view: View, now_ns: int) -> Sequence[JobView]:
        if self._came or self._slipped(view, now_ns):
            self._came = False
            self._refresh(view, now_ns)
        return self.uninterrupted(self._late_last(view.ready) if self._late else view.ready)

    def _late_last(self, queue: Sequence[JobView]) -> Sequence[JobView]:
        """Jobs that cannot be in time come behind those that can, and before best effort."""
        urgent = real_time(queue)
        late = [job for job in urgent if job.id in self._late]
        in_time = [job for job in urgent if job.id not in self._late]
        return [*in_time, *late, *queue[len(urgent) :]] if in_time else queue

    def _slipped(self, view: View, now_ns: int) -> bool:
        """Whether a job that was to be in time would not be, as things are (Eq. 2)."""
        (processor, handoff_ns), done_ns = _where(view), now_ns
        for job in view.ready:
            if job.priority == LOW:
                break
            if job.id not in self._late:
                variant = self.variant(job) or job.variant
                done_ns += left_ns(job, processor, variant, handoff_ns)
                if done_ns > job.deadline_ns:
                    return True
        return False

    def _refresh(self, view: View, now_ns: int) -> None:
        """Steps 1-3 for the queue as it is, from now on."""
        self._late.clear()
        (processor, handoff_ns), done_ns = _where(view), now_ns
        chosen: list[_Choice] = []
        before: list[_Choice] = []  # those that are in time
        for job in real_time(view.ready):
            fixed = not self.exits or (not self.switches and job.executed_ns > 0)
            own = _Choice(job, processor, handoff_ns, fixed)
            chosen.append(own)
            before.append(own)
            done_ns += own.left_ns
            while done_ns > job.deadline_ns:
                shrinking = min(before, key=_drop)
                if shrinking.drop == inf:
                    self._late.add(job.id)
                    done_ns -= before.pop().left_ns
                    break
                done_ns -= shrinking.shrink()
        self._variants = {each.id: each.variant for each in chosen if each.variant != each.was}


class _Choice:
    """The variant that a job is to end as. ``drop``: the accuracy lost against the whole network if
    it took its next smaller one; infinite where there is none."""

    __slots__ = (
        "_handoff_ns", "_job", "_processor", "_smaller", "drop", "id", "left_ns", "variant", "was",
    )  # fmt: skip

    def __init__(self, job: JobView, processor: str, handoff_ns: float, fixed: bool) -> None:
        self.id, self.was = job.id, job.variant
        self._job, self._processor, self._handoff_ns = job, processor, handoff_ns
        self._smaller: tuple[str, ...] = ()
        if fixed or not job.variants:
            self.variant = job.variant
        else:
            self.variant, self._smaller = job.variants[-1], job.variants[:-1]
        self.left_ns = left_ns(job, processor, self.variant, handoff_ns)
        self.drop = self._next_drop()

    def shrink(self) -> int:
        """Take the next smaller one; how much sooner the job is done."""
        before_ns = self.left_ns
        self.variant, self._smaller = self._smaller[-1], self._smaller[:-1]
        self.left_ns = left_ns(self._job, self._processor, self.variant, self._handoff_ns)
        self.drop = self._next_drop()
        return before_ns - self.left_ns

    def _next_drop(self) -> float:
        if not self._smaller:
            return inf
        costs = self._job.costs[self._job.stage]
        variants = costs.variants
        return variants[costs.whole].exit.accuracy - variants[self._smaller[-1]].exit.accuracy


def _drop(choice: _Choice) -> float:
    return choice.drop


def _where(view: View) -> tuple[str, float]:
    """The processor, and what each chunk there takes beside its own time, ns."""
    processor = view.processors[0]
    return processor, view.handoff_ns.get(processor, 0.0)


def left_ns(job: JobView, processor: str, variant: str, handoff_ns: float = 0.0) -> int:
    """What a job that ends as a variant still takes: t of Eq. 2, with what other inputs and later
    stages take, which run whole. ``handoff_ns``: of each chunk, to the device and back, and of the
    answer."""
    costs, stage = job.costs, job.stage
    own = costs[stage]
    ns = own.left_on(processor, job.passed_op, variant)
    ns = own.lone_ns if ns is None else ns
    more = job.tasks - job.task - 1
    if more:
        ns += more * (own.left_on(processor, 0) or 0)
    if handoff_ns:
        ns += int(handoff_ns * (own.left(job.passed_op, variant)[2] + 1))
    if stage + 1 < len(costs):
        later = costs[stage + 1 :]
        ns += sum(int(each.tasks * (each.left_on(processor, 0) or 0)) for each in later)
    return ns


class WithoutSwitching(EdfExits):
    """The paper's ablation "w/o-ee" (section 5.2): variants are chosen before a job begins."""

    name = "edf-exits-noswitch"
    switches = False


class WithoutSwitchingOrPreemption(WithoutSwitching):
    """Its ablation "w/o-ee-pr": nor is a job that has begun interrupted."""

    name = "edf-exits-noswitch-nopreempt"
    whole_networks = True


class WithoutExits(EdfExits):
    """Networks always run whole, chunk by chunk."""

    name = "edf-exits-noexits"
    exits = False


class WithoutExitsOrPreemption(WithoutExits):
    """Whole networks, one after the other: earliest deadline first."""

    name = "edf-exits-noexits-nopreempt"
    whole_networks = True
