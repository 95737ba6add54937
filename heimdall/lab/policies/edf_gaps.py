"""Earliest deadline first among jobs of the highest priority, chunk by chunk as long as gaps."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.greedy import Greedy
from heimdall.schedulers.utility import BETAS
from heimdall.vocabulary.enums import Priority


class EarliestDeadlineInGaps(Greedy):
    """Deadline check first, then by priority, then the earliest deadline (Liu and Layland 1973); a
    job does not wait for the end of a later one's chunk. Where deadlines are so many times what a
    network takes alone, short ones overtake long ones, as by shortest processing time. Among jobs
    of low priority nothing is cut short: to hand over costs, and nobody waits for them.
    """

    name = "edf-gaps"
    reason = "earliest deadline"

    def prefer(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView:
        return min(jobs, key=_rank)

    def preempts(self, job: JobView, running: JobView) -> bool:
        return job.priority != Priority.LOW and _rank(job) < _rank(running)


def _rank(job: JobView) -> tuple[float, int]:
    return -BETAS[job.priority], job.deadline_ns
