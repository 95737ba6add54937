"""MaxTotalUtility (Heimdall, Eq. 6 and section 6.4): the largest sum of utilities."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.greedy import Greedy


class MaxTotal(Greedy):
    """Deadline check first, then the DNN whose run leaves the largest sum of utilities when all
    others wait one scheduling interval more: high priorities (large beta) go first.

    Of the sums ``U_i(t) + sum of U_j(t + interval) over j != i`` the largest belongs to the DNN
    that loses most by waiting, ``U_i(t) - U_i(t + interval)``; comparing these alone makes the
    decision linear in the number of DNNs, and constants (l0, alpha * C) cancel.
    """

    name = "max-total"
    reason = "largest total utility"

    def prefer(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView:
        best, most = jobs[0], -inf
        later_ns = now_ns + view.interval_ns
        for job in jobs:  # a key for max() costs a call more a job
            lost = job.loss_between(now_ns, later_ns)
            if lost > most:
                best, most = job, lost
        return best
