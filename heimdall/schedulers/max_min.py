"""MaxMinUtility (Heimdall, Eq. 5 and section 6.4): raise whoever is worst off."""

from __future__ import annotations

from math import inf

from heimdall.schedulers.base import Choice, Scheduler, View, run
from heimdall.schedulers.deadline import at_risk


class MaxMin(Scheduler):
    """Deadline check first, then the DNN with the lowest utility now: a fair share for all."""

    name = "max-min"

    def select(self, view: View, now_ns: int) -> Choice | None:
        urgent = at_risk(view, now_ns)
        if urgent is not None:
            return run(urgent, "deadline")
        jobs = view.jobs
        worst = jobs[0]
        if len(jobs) > 1:
            lowest = inf
            for job in jobs:
                utility = job.utility_at(now_ns)
                if utility < lowest:
                    worst, lowest = job, utility
        return run(worst, "lowest utility")
