"""The greedy rule (Heimdall, section 6.4): deadlines first, then whichever job a policy prefers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from heimdall.schedulers.base import Assignment, Choice, JobView, Scheduler, View
from heimdall.schedulers.deadline import HIGH, at_risk
from heimdall.schedulers.utility import BETAS
from heimdall.vocabulary.processors import GPU
from heimdall.vocabulary.reasons import ALONE, AT_RISK, until_back

# Fallback ops that take so many times as long as a hand-over gain nothing by holding the GPU: to
# hand it over costs two, but an op may then run beside a frame, which takes a fifth of the time.
_WORTH_HOLDING = 10


class Greedy(Scheduler):
    """Runs a job that is at risk of missing its deadline, else the one that ``prefer`` names, for
    as long as fits the gap.

    While the job that should run is away on the CPU, the next best runs until it is back. A job
    of a higher priority does not wait for the end of a chunk.
    """

    reason: str  # why the preferred job runs

    @abstractmethod
    def prefer(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView:
        """The one of ``jobs`` (two or more, none of them at risk) that is worth most now."""

    def select(self, view: View, now_ns: int) -> Choice | None:
        ends = view.fitting()
        if not ends:
            return None
        fitting, away = [job for job in view.ready if job.id in ends], view.away
        if away:
            awaited, _ = self._first(view, now_ns, [*fitting, *away])
            if any(job is awaited for job in away):
                job = self._first(view, now_ns, fitting)[0]
                return _meanwhile(view, job, ends[job.id], awaited, now_ns)
        elif len(fitting) == 1:
            job = fitting[0]
            return Choice((_assignment(view, job, ends[job.id], now_ns),), ALONE)
        job, reason = self._first(view, now_ns, fitting)
        return Choice((_assignment(view, job, ends[job.id], now_ns),), reason)

    def hopeless(self, job: JobView, now_ns: int) -> str:
        """A request that would be late even alone, and that is not marked urgent: in overload
        it would only make others late."""
        if job.priority == HIGH or now_ns + job.remaining_ns + job.other_ns <= job.deadline_ns:
            return ""
        return "cannot be in time any more"

    def preempts(self, job: JobView, running: JobView) -> bool:
        return BETAS[job.priority] > BETAS[running.priority]

    def _first(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> tuple[JobView, str]:
        """The job to run of some, and why."""
        urgent = at_risk(view, now_ns, jobs)
        if urgent is not None:
            return urgent, AT_RISK
        if len(jobs) == 1:
            return jobs[0], self.reason
        preferred = self.prefer(view, now_ns, jobs)
        if all(job is not preferred for job in jobs):
            raise ValueError(f"prefer must return one of its jobs, not {preferred!r:.60}")
        return preferred, self.reason


def _assignment(view: View, job: JobView, fits_op: int, now_ns: int) -> Assignment:
    """As much of ``job`` as fits the gap. One of high priority that is at risk of missing its
    deadline keeps the GPU during fallback ops that are short beside two hand-overs: to the CPU and
    back, behind what others run meanwhile (section 3.2.2)."""
    hold_ns = _WORTH_HOLDING * view.handoff_ns.get(GPU, 0)
    if hold_ns and job.priority == HIGH and at_risk(view, now_ns, [job]) is not None:
        through_op = view.longest(job, hold_ns=hold_ns)
        if through_op > fits_op:
            return Assignment(job.id, through_op, holds=True)
    return Assignment(job.id, fits_op)


def _meanwhile(
    view: View, job: JobView, fits_op: int, awaited: JobView, now_ns: int
) -> Choice | None:
    """As much of ``job`` (of which ops up to ``fits_op`` fit the gap) as fits until ``awaited``, an
    urgent one, is back from the CPU (section 7.2); None when no op does (or, where chunks cannot be
    cut, not all of it): then the wait is shorter than what it would have to wait for. A chunk as
    long as the gap would keep it waiting at each of its fallback ops (section 3.2.2).

    One that is late is taken to be late by as much again, so that the GPU does not stand still
    for fallback ops that take far longer than expected.
    """
    left_ns = abs(awaited.back_ns - now_ns)
    end_op = min(job.costs[job.stage].longest(job.next_op, left_ns), fits_op)
    if end_op == job.next_op or (end_op < fits_op and not view.cuts_anywhere):
        return None
    return Choice((Assignment(job.id, end_op),), until_back(awaited.dnn))
