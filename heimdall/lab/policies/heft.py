"""Heterogeneous earliest finish time: the makespan policy of Band's code (MobiSys '22 names none
for the workloads that have no SLO, EagleEye and Distream)."""

from __future__ import annotations

from heimdall.lab.policies.subgraphs import PendingDecision, SubgraphPolicy
from heimdall.schedulers.base import Choice, View


class EarliestFinish(SubgraphPolicy):
    """The job that would end last goes first, on its shortest way.

    Where that begins at a processor that is busy, the processor is kept for it: others reckon with
    what it will take there, and have what is idle meanwhile.
    """

    name = "heft"

    def select(self, view: View, now_ns: int) -> Choice | None:
        moment = PendingDecision(view, now_ns)
        way_of, waiting = moment.way, list(zip(view.ready, self.rests(view.ready), strict=True))
        while moment.idle:
            last, longest, latest_ns = None, None, now_ns - 1
            for each in waiting:
                way = way_of(each[1])
                if way is not None and way.finish_ns > latest_ns:
                    last, longest, latest_ns = each, way, way.finish_ns
            if last is None or longest is None:
                break
            waiting.remove(last)
            if longest.processor in moment.idle:
                moment.run(last[0], longest)
            else:
                moment.reserve(longest)
        return moment.choice("would end last")
