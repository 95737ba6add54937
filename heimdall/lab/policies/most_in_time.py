"""The most frames in time: earliest deadline first, without what cannot be fitted in.

Moore's algorithm (Management Science 1968, as Hodgson has it there) finds the largest set of jobs
that one machine can end in time: deadline by deadline, and where one would be late, the longest so
far is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from heimdall.schedulers.base import GAP_OPENED, Assignment, Choice, FreeRanges, JobView, View
from heimdall.schedulers.in_order import whole

_MARGIN = 1.2  # what runs whole on a CPU may take so much longer


class MostInTime(FreeRanges):
    """The fastest processor has the jobs that can be in time there, in the order of their
    deadlines, each until the next frame at most; behind them those that are left out. Until its
    turn a job runs on another one that is idle, as far as it comes.

    A model's frames count as much together as another model's, however often they come. So what is
    left out is the job that takes the largest share of its period, not the longest. Where there are
    frames, work takes as much longer as gaps are shorter than their interval.
    """

    name = "most-in-time"

    def __init__(self) -> None:
        self._periods_ns: dict[str, int] = {}  # by model, the longest time a request had
        self._slower = 1.0

    def select(self, view: View, now_ns: int) -> Choice | None:
        self._look(view, now_ns)
        fastest = min(view.processors, key=lambda each: sum(_ns(job, each) for job in view.ready))
        turn_ns = float(max(now_ns, view.free_ns[fastest]))
        idle, chosen = list(view.idle), []
        for job in self._in_turn(view.ready, fastest, turn_ns):
            first = fastest in idle
            processor = fastest if first else next(iter(idle), "")
            if not processor:
                break
            waits_ns, turn_ns = turn_ns - now_ns, turn_ns + self._slower * _ns(job, fastest)
            if not _in_pieces(job, processor):
                in_time = now_ns + _MARGIN * _ns(job, processor) <= job.deadline_ns
                end = whole(job) if first or in_time else job.next_op
            elif first:
                end = max(_reached(job, processor, view.gap_end_ns - now_ns), job.next_op + 1)
            else:
                end = _reached(job, processor, waits_ns)
            if end > job.next_op:
                chosen.append(Assignment(job.id, end, processor))
                idle.remove(processor)
        return Choice(tuple(chosen), "earliest deadline") if chosen else None

    def _in_turn(
        self, jobs: Sequence[JobView], processor: str, from_ns: float
    ) -> Sequence[JobView]:
        """Jobs that a processor can end in time, in the order of their deadlines, then others."""
        done_ns, kept, left_out = from_ns, [], []
        for job in sorted(jobs, key=lambda each: each.deadline_ns):
            kept.append(job)
            done_ns += self._slower * _ns(job, processor)
            if done_ns > job.deadline_ns:
                worst = max(kept, key=lambda each: _ns(each, processor) / self._period_ns(each))
                kept.remove(worst)
                left_out.append(worst)
                done_ns -= self._slower * _ns(worst, processor)
        return [*kept, *left_out]

    def _look(self, view: View, now_ns: int) -> None:
        if view.trigger == GAP_OPENED and view.gap_end_ns > now_ns:
            self._slower = max(1.0, view.interval_ns / (view.gap_end_ns - now_ns))
        for job in view.ready:
            self._periods_ns[job.dnn] = max(self._period_ns(job), job.constraint_ns)

    def _period_ns(self, job: JobView) -> int:
        return self._periods_ns.get(job.dnn, 0)


def _ns(job: JobView, processor: str) -> float:
    """What is left of a job there; infinite where it cannot run."""
    ns = job.costs[job.stage].on_ns(processor, job.next_op, whole(job))
    return inf if ns is None else ns


def _reached(job: JobView, processor: str, left_ns: float) -> int:
    """How far a job comes there in that time."""
    costs, low, high = job.costs[job.stage], job.next_op, whole(job)
    while low < high:
        middle = (low + high + 1) // 2
        ns = costs.on_ns(processor, job.next_op, middle)
        if ns is not None and ns <= left_ns:
            low = middle
        else:
            high = middle - 1
    return low


def _in_pieces(job: JobView, processor: str) -> bool:
    """Whether a processor runs less than a whole network."""
    return job.costs[job.stage].on_ns(processor, job.next_op, job.next_op + 1) is not None
