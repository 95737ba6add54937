"""What policies share that serve requests in one order: each goes where it is done soonest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from heimdall.schedulers.base import Assignment, Choice, FreeRanges, JobView, View


class InOrder(FreeRanges):
    """Serves the jobs of ``order``, one after the other, each as far as ``end``.

    A job takes the processor on which it is expected to be done first, be that idle or not: a slow
    one does not get what a fast one would end sooner, and waiting for a busy one keeps the turn
    there. Where a processor supports only the first of a job's ops, it runs those, unless another
    one supports more of them.
    """

    reason: str

    def select(self, view: View, now_ns: int) -> Choice | None:
        idle, free_ns, own = list(view.idle), dict(view.free_ns), self.processors
        processors = [each for each in free_ns if own is None or each in own]
        chosen: list[Assignment] = []
        for job in self.order(view, now_ns):
            variant, end = self.variant(job), self.end(job, view)
            start = start_of(job, variant) if variant else job.next_op
            found = _soonest(job, start, end, processors, free_ns)
            if found is None:
                continue
            processor, end_op, done_ns = found
            if processor in idle:
                chosen.append(Assignment(job.id, end_op, processor, variant))
                idle.remove(processor)
                if not idle:
                    break
            if processor not in idle:
                free_ns[processor] = done_ns
        return Choice(tuple(chosen), self.reason) if chosen else None

    def order(self, view: View, now_ns: int) -> Sequence[JobView]:
        """The jobs that wait, in the order of their turns. Default: the queue as it is."""
        return view.ready

    def variant(self, job: JobView) -> str:
        """What its network is to end as, "" for what it is to anyway."""
        return ""

    @abstractmethod
    def end(self, job: JobView, view: View) -> int:
        """The op before which another job may have the processor."""


def start_of(job: JobView, variant: str) -> int:
    """The next op of a job that is to end as a variant of its network."""
    return job.costs[job.stage].variants[variant].next_op[job.passed_op]


def lone_ns(job: JobView) -> int:
    """What all of a job takes alone: Ext of SPLIT's Algorithm 1."""
    costs = job.costs
    return costs[0].lone_ns if len(costs) == 1 else sum(stage.lone_ns for stage in costs)


def whole(job: JobView) -> int:
    """The end of a network that is not split."""
    return job.costs[job.stage].ops


def _soonest(
    job: JobView, start: int, end: int, processors: Sequence[str], free_ns: Mapping[str, int]
) -> tuple[str, int, int] | None:
    """(Processor, how far a job runs there, when it is done); None where it cannot run."""
    costs = job.costs[job.stage]
    best: tuple[str, int, int] | None = None
    for processor in processors:
        ranges = costs.on(processor)
        reach = start if ranges is None else min(end, ranges.supported_to(start))
        ns = costs.on_ns(processor, start, reach) if reach > start else None
        if ns is None:
            continue
        done_ns = free_ns[processor] + ns
        if best is None or reach > best[1] or (reach == best[1] and done_ns < best[2]):
            best = processor, reach, done_ns
    return best
