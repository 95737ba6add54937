"""MaxTotalUtility (Heimdall, Eq. 6 and section 6.4): the largest sum of utilities."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from heimdall.schedulers.base import Choice, JobView, Scheduler, View, run
from heimdall.schedulers.deadline import at_risk
from heimdall.schedulers.returning import meanwhile


class MaxTotal(Scheduler):
    """Deadline check first, then the DNN whose run leaves the largest sum of utilities when all
    others wait one scheduling interval more: high priorities (large beta) go first.

    Of the sums ``U_i(t) + sum of U_j(t + interval) over j != i`` the largest belongs to the DNN
    that loses most by waiting, ``U_i(t) - U_i(t + interval)``; comparing these alone makes the
    decision linear in the number of DNNs, and constants (l0, alpha * C) cancel.
    """

    name = "max-total"

    def select(self, view: View, now_ns: int) -> Choice | None:
        if len(view.jobs) == 1 and not view.away:
            return run(view.jobs[0], "no other fits")
        if view.away:
            awaited, _ = _best(view, now_ns, [*view.jobs, *view.away])
            if awaited in view.away:
                return meanwhile(_best(view, now_ns, view.jobs)[0], awaited, now_ns)
        return run(*_best(view, now_ns, view.jobs))


def _best(view: View, now_ns: int, jobs: Sequence[JobView]) -> tuple[JobView, str]:
    """The job to run of some, and why."""
    urgent = at_risk(view, now_ns, jobs)
    if urgent is not None:
        return urgent, "deadline"
    best = jobs[0]
    if len(jobs) > 1:
        most, later_ns = -inf, now_ns + view.interval_ns
        for job in jobs:
            lost = job.loss_between(now_ns, later_ns)
            if lost > most:
                best, most = job, lost
    return best, "largest total utility"
