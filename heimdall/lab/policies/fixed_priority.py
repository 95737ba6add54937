"""What Pantheon (MobiSys '24, section 5) is compared with: networks with fixed priorities, which
run from their first op to their last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heimdall.lab.policies.real_time import RealTime
from heimdall.schedulers.base import JobView
from heimdall.schedulers.in_order import lone_ns


class RateMonotonic(RealTime):
    """Rate-monotonic scheduling as the paper has it, where all tasks have the same rate: the
    shortest network first."""

    name = "rms"
    reason = "shortest network"

    def rank(self, job: JobView) -> int:
        return lone_ns(job)


class DeadlineMonotonic(RealTime):
    """Deadline-monotonic scheduling: the network with the least time for a request first."""

    name = "dms"
    reason = "least time given"

    def rank(self, job: JobView) -> int:
        return job.constraint_ns


class RtMdl(RealTime):
    """RT-mDL (SenSys '21) as Pantheon's paper has it: a priority and a scaled network for each
    model, both chosen before anything runs, and neither preemption nor another choice later.

    ``ranks`` and ``variants`` by model; without them, deadline-monotonic and whole. The simulator
    searches for them (``heimdall.lab.simulator.scaling``).
    """

    name = "rt-mdl"
    reason = "priority"

    def __init__(
        self, ranks: Mapping[str, int] | None = None, variants: Mapping[str, str] | None = None
    ) -> None:
        self._ranks, self._variants = ranks or {}, variants or {}

    def config(self) -> dict[str, Any]:
        chosen = {"ranks": dict(self._ranks), "variants": dict(self._variants)}
        return chosen if any(chosen.values()) else {}

    def rank(self, job: JobView) -> int:
        return self._ranks.get(job.dnn, job.constraint_ns)

    def variant(self, job: JobView) -> str:
        return self._variants.get(job.dnn, "")
