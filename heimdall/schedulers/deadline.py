"""The deadline check that every policy makes first (Heimdall, section 6.4)."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.schedulers.base import JobView, View
from heimdall.vocabulary.enums import Priority

HIGH = Priority.HIGH
_FIRST, _IN_TIME, _LATE = range(3)


def at_risk(view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView | None:
    """The one of ``jobs`` that must run now, or None when all can wait one more interval.

    A job is at risk when it would miss its constraint if it got nothing of this gap. Time left
    is counted in gaps times the frame interval, not in GPU time: 30 ms of work is 67 ms away
    when a frame is 33 ms and its gap 27 ms. Its ops come one after the other, so those that run on
    the CPU lie in its gaps, too. Among several those of high priority go first: what a user waits
    for is better soon than later, even late. Then the earliest deadline; jobs that can no longer
    make it come after those that can. So that a run of tight deadlines does not hold them back for
    ever, a job late by its whole constraint once more goes with the first, and being the oldest it
    wins.
    """
    chosen, best = None, (_LATE, 0)
    next_gap_ns, interval_ns = view.gap_end_ns, view.interval_ns
    for job in jobs:
        deadline_ns = job.deadline_ns
        if next_gap_ns + job.gaps * interval_ns <= deadline_ns:
            continue
        if job.priority == HIGH or now_ns > deadline_ns + job.constraint_ns:
            urgency = _FIRST
        elif earliest_end_ns(job, view, now_ns) <= deadline_ns:
            urgency = _IN_TIME
        else:
            urgency = _LATE
        rank = (urgency, deadline_ns)
        if chosen is None or rank < best:
            chosen, best = job, rank
    return chosen


def earliest_end_ns(job: JobView, view: View, now_ns: int) -> int:
    """When a job could end at best: it starts now and has every gap for itself."""
    end_ns = now_ns + job.remaining_ns + job.other_ns
    if job.gaps > 1:
        end_ns = max(end_ns, view.gap_end_ns + (job.gaps - 1) * view.interval_ns)
    return end_ns
