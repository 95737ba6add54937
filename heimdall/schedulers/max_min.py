"""MaxMinUtility (Heimdall, Eq. 5 and section 6.4): raise whoever is worst off."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from heimdall.schedulers.base import Choice, JobView, Scheduler, View, run
from heimdall.schedulers.deadline import at_risk
from heimdall.schedulers.returning import meanwhile


class MaxMin(Scheduler):
    """Deadline check first, then the DNN with the lowest utility now: a fair share for all."""

    name = "max-min"

    def select(self, view: View, now_ns: int) -> Choice | None:
        if len(view.jobs) == 1 and not view.away:
            return run(view.jobs[0], "no other fits")
        if view.away:
            awaited, _ = _worst(view, now_ns, [*view.jobs, *view.away])
            if awaited in view.away:
                return meanwhile(_worst(view, now_ns, view.jobs)[0], awaited, now_ns)
        return run(*_worst(view, now_ns, view.jobs))


def _worst(view: View, now_ns: int, jobs: Sequence[JobView]) -> tuple[JobView, str]:
    """The job to run of some, and why."""
    urgent = at_risk(view, now_ns, jobs)
    if urgent is not None:
        return urgent, "deadline"
    worst = jobs[0]
    if len(jobs) > 1:
        lowest = inf
        for job in jobs:
            utility = job.utility_at(now_ns)
            if utility < lowest:
                worst, lowest = job, utility
    return worst, "lowest utility"
