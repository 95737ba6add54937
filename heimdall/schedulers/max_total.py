"""MaxTotalUtility (Heimdall, Eq. 6 and section 6.4): the largest sum of utilities."""

from __future__ import annotations

from math import inf

from heimdall.schedulers.base import Choice, Scheduler, View, run
from heimdall.schedulers.deadline import at_risk


class MaxTotal(Scheduler):
    """Deadline check first, then the DNN whose run leaves the largest sum of utilities when all
    others wait one scheduling interval more: high priorities (large beta) go first.

    Of the sums ``U_i(t) + sum of U_j(t + interval) over j != i`` the largest belongs to the DNN
    that loses most by waiting, ``U_i(t) - U_i(t + interval)``; comparing these alone makes the
    decision linear in the number of DNNs, and constants (l0, alpha * C) cancel.
    """

    name = "max-total"

    def select(self, view: View, now_ns: int) -> Choice | None:
        urgent = at_risk(view, now_ns)
        if urgent is not None:
            return run(urgent, "deadline")
        jobs = view.jobs
        best = jobs[0]
        if len(jobs) > 1:
            most, later_ns = -inf, now_ns + view.interval_ns
            for job in jobs:
                lost = job.loss_between(now_ns, later_ns)
                if lost > most:
                    best, most = job, lost
        return run(best, "largest total utility")
