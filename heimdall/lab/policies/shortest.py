"""Shortest expected latency: a baseline of Band's code (MobiSys '22)."""

from __future__ import annotations

from heimdall.lab.policies.subgraphs import PendingDecision, SubgraphPolicy
from heimdall.schedulers.base import Choice, View


class ShortestLatency(SubgraphPolicy):
    """Jobs in their order, each where it ends first; where that is busy it waits there, whatever
    else is idle. (Band's code binds each to its processor's own queue, and never thinks again.)"""

    name = "shortest"

    def select(self, view: View, now_ns: int) -> Choice | None:
        moment = PendingDecision(view, now_ns)
        for job in view.ready:
            way = moment.way(self.rest(job))
            if way is None:
                continue
            if way.processor not in moment.idle:
                moment.reserve(way)
                continue
            moment.run(job, way)
            if not moment.idle:
                break
        return moment.choice("ends first there")
