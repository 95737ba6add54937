"""MaxMinUtility (Heimdall, Eq. 5 and section 6.4): raise the DNN that is worst off."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.greedy import Greedy


class MaxMin(Greedy):
    """Deadline check first, then the DNN with the lowest utility now: a fair share for all."""

    name = "max-min"
    reason = "lowest utility"

    def prefer(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView:
        worst, lowest = jobs[0], inf
        for job in jobs:  # a key for min() costs a call more a job
            utility = job.utility_at(now_ns)
            if utility < lowest:
                worst, lowest = job, utility
        return worst
