"""Least slack time (Band, MobiSys '22, Fig. 12)."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.lab.policies.subgraphs import PendingDecision, SubgraphPolicy
from heimdall.schedulers.base import Choice, JobView, View


class LeastSlack(SubgraphPolicy):
    """The job with the least time to spare before its deadline goes first, on its shortest way.

    One whose way begins at a processor that is busy waits for that, and others have what is idle
    meanwhile: the paper's figure has one decision only; this is what its code does.
    """

    name = "lst"

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        """What is left of a job goes to the head, to see quickly whether it can still be in time
        (4.3.1)."""
        return 0 if job.next_op or job.stage else len(queue)

    def select(self, view: View, now_ns: int) -> Choice | None:
        moment = PendingDecision(view, now_ns)
        way_of, slacks = moment.way, []
        for order, (job, rest) in enumerate(zip(view.ready, self.rests(view.ready), strict=True)):
            if (way := way_of(rest)) is not None:
                slacks.append((job.deadline_ns - way.finish_ns, order, job, rest))
        slacks.sort()
        for _, _, job, rest in slacks:
            way = way_of(rest)
            if way is not None and way.processor in moment.idle:
                moment.run(job, way)
                if not moment.idle:
                    break
        return moment.choice("least slack")
