"""The runtime-aware approach (ICCAD '21; "RT-A" in SPLIT's paper): networks side by side on one
GPU, split into groups of ops and aligned."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.in_order import InOrder, lone_ns


class RtA(InOrder):
    """Requests that wait together run together, and what comes meanwhile waits for their end: a
    short one is "aligned" with long ones and shares their fate (section 2.2).

    GPU streams are imitated: the requests of a round take turns, block by block, so that all are
    through the same share of their blocks. A turn costs what cutting does; that stands for
    contention, which the paper names as this approach's price and gives no figure of.
    """

    name = "rt-a"
    reason = "its turn of the round"
    partition = "even"

    def __init__(self) -> None:
        self._round: frozenset[int] = frozenset()  # ids of jobs

    def order(self, view: View, now_ns: int) -> Sequence[JobView]:
        those = [job for job in view.ready if job.id in self._round]
        if not those and not any(job.id in self._round for job in view.running):
            those = list(view.ready)
            self._round = frozenset(job.id for job in (*those, *view.running))
        ranked = [(_share_after(job), lone_ns(job), job.id, job) for job in those]
        ranked.sort()
        return [each[3] for each in ranked]

    def end(self, job: JobView, view: View) -> int:
        return job.costs[job.stage].block_end(job.next_op)


def _share_after(job: JobView) -> float:
    """The share of a job's blocks that have run when its next one has."""
    costs = job.costs[job.stage]
    left, blocks = costs.chunks_left[costs.block_end(job.next_op)], costs.chunks_left[0] or 1
    return (job.stage + 1 - left / blocks) / len(job.costs)
