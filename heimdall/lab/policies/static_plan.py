"""One plan, made before, for a request of every model, as compilers make it (TOP, III-D)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heimdall.lab.policies.grouped import Stages, assignments
from heimdall.schedulers.base import Choice, FreeRanges, JobView, View
from heimdall.vocabulary.processors import GPU


class StaticPlan(FreeRanges):
    """Runs rounds of one request of each of ``models``, in ``stages`` of their ops. Such plans are
    for models that share their input, and wait until there is one for each (section II);
    ``waits`` False: a round begins with those that are there, and leaves the others' places free.
    """

    name = "static-plan"
    together = True

    def __init__(self, models: Sequence[str], stages: Stages, *, waits: bool = True) -> None:
        self.models, self.stages, self.waits = tuple(models), stages, waits

    def config(self) -> dict[str, Any]:
        groups = [[[member, list(ops)] for member, ops in stage] for stage in self.stages]
        return {"models": list(self.models), "stages": groups, "waits": self.waits}

    def select(self, view: View, now_ns: int) -> Choice | None:
        if view.running or GPU not in view.idle:
            return None
        first: dict[str, JobView] = {}
        for job in view.ready:
            first.setdefault(job.dnn, job)
        if self.waits and len(first) < len(self.models):
            return None
        jobs = {index: first[name] for index, name in enumerate(self.models) if name in first}
        ends = {index: job.costs[job.stage].ops for index, job in jobs.items()}
        return Choice(assignments(self.stages, jobs, ends, GPU), "a round of the plan")
