"""MaxMinUtility (Heimdall, Eq. 5 and section 6.4): raise whoever is worst off."""

from __future__ import annotations

from heimdall.schedulers.base import Choice, Scheduler, View, run
from heimdall.schedulers.deadline import at_risk


class MaxMin(Scheduler):
    """Deadline check first, then the DNN with the lowest utility now: a fair share for all."""

    name = "max-min"

    def select(self, view: View, now_ns: int) -> Choice | None:
        urgent = at_risk(view, now_ns)
        if urgent is not None:
            return run(urgent, "deadline")
        return run(min(view.jobs, key=lambda job: job.utility_at(now_ns)), "lowest utility")
