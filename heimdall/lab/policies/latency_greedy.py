"""Greedy by latency, as XRBench's reference scheduler is (Kwon et al., MLSys '23)."""

from __future__ import annotations

from heimdall.schedulers.base import Assignment, Choice, FreeRanges, JobView, View
from heimdall.schedulers.in_order import whole


class LatencyGreedy(FreeRanges):
    """Each processor that is idle takes the request that it ends soonest, whole, whatever the
    deadlines; of equal ones, the one that came first. What runs is not interrupted."""

    name = "greedy"

    def select(self, view: View, now_ns: int) -> Choice | None:
        waiting, chosen = list(view.ready), []
        for processor in view.idle:
            there = [(ns, job) for job in waiting if (ns := _left_ns(job, processor)) is not None]
            if there:
                _, job = min(there, key=lambda each: each[0])
                chosen.append(Assignment(job.id, whole(job), processor))
                waiting.remove(job)
        return Choice(tuple(chosen), "shortest there") if chosen else None


def _left_ns(job: JobView, processor: str) -> int | None:
    """What is left of a job's network there; None where it cannot run."""
    return job.costs[job.stage].on_ns(processor, job.next_op, whole(job))
