"""A fixed processor for every network: what frameworks for one network do (Band, MobiSys '22,
section 6.2).

What becomes of ops that the processor lacks is a matter of the plan (``heimdall.analyzer.silent``).
"""

from __future__ import annotations

from collections.abc import Mapping

from heimdall.lab.policies.subgraphs import SubgraphPlan, SubgraphPolicy
from heimdall.schedulers.base import Assignment, Choice, JobView, View


class Fixed(SubgraphPolicy):
    """First come, first served at each network's own processor: the one of ``mapping``, else the
    one where it is fastest alone as profiled, whatever is learnt and whatever waits there. Only
    while that is lost, it runs where it ends first. A network is one instance of a runtime, which
    runs one request at a time."""

    name = "fixed"
    requeues = False

    def __init__(self, mapping: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._mapping = mapping or {}
        self._own: dict[tuple[str, int, int], SubgraphPlan | None] = {}

    def select(self, view: View, now_ns: int) -> Choice | None:
        idle, chosen = list(view.idle), []
        running = {job.dnn for job in view.running}
        for job in view.ready:
            if job.dnn in running:
                continue
            way = self._way(job)
            if way is not None and way.processor not in view.processors:
                rest = self.rest(job)
                way = rest.sequences.shortest(rest.unit, view.free_ns, now_ns)
            if way is not None and way.processor in idle:
                chosen.append(Assignment(job.id, way.end_op, way.processor))
                idle.remove(way.processor)
                running.add(job.dnn)
        return Choice(tuple(chosen), "its own processor") if chosen else None

    def hopeless(self, job: JobView, now_ns: int) -> str:
        """Never: such frameworks know nothing of deadlines."""
        return ""

    def _way(self, job: JobView) -> SubgraphPlan | None:
        key = job.dnn, job.stage, job.next_op
        if key not in self._own:
            rest, own = self.rest(job), self._mapping.get(job.dnn)
            there = rest.sequences.as_profiled(rest.unit, (own,)) if own else None
            self._own[key] = there or rest.sequences.as_profiled(rest.unit)
        return self._own[key]
