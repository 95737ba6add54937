"""First come, first served, network by network: what SPLIT's paper compares with as ClockWork."""

from __future__ import annotations

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.in_order import InOrder, whole


class Fcfs(InOrder):
    """The oldest request, to its end. ClockWork also drops a request on arrival that is predicted
    to be late (section 7); the comparison has no such figure, and nothing is dropped here."""

    name = "fcfs"
    reason = "came first"

    def end(self, job: JobView, view: View) -> int:
        return whole(job)
