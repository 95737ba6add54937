"""The coordinator of the baselines: it starts what is wanted, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heimdall.coordinator.gap import Gap
from heimdall.coordinator.snapshot import DnnStatus, Snapshot
from heimdall.system.faults import Faults
from heimdall.vocabulary.events import (
    Action,
    DnnAdded,
    DnnAdjusted,
    DnnRemoved,
    Event,
    Finish,
    InferenceRequested,
    Prepare,
    RenderStarted,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import GPU


@dataclass(frozen=True, slots=True)
class InferenceEnded:
    """A baseline's thread has run a DNN."""

    finish: Finish


class Bystander:
    """In the place of the Coordinator: asks continuous DNNs to start, passes requests on, and
    decides nothing."""

    keeps_gaps = False
    decisions = 0
    replaced = ""

    def __init__(self, plans: Sequence[DnnPlan] = ()) -> None:
        self.faults = Faults()
        self._plans: dict[str, DnnPlan] = {}
        self._statuses: dict[str, DnnStatus] = {}  # of DNNs that have been removed, too
        self._started = False
        self._next = 0  # job
        for plan in plans:
            self._added(plan)

    def receive(self, event: Event | InferenceEnded, now_ns: int) -> list[Action]:
        """Requests as they come; with the first frame, one to every continuous DNN, and to those
        that are added later at once."""
        if isinstance(event, InferenceRequested):
            return [self._prepare(event.dnn)]
        if isinstance(event, InferenceEnded):
            self._finished(event.finish)
            return [event.finish]
        if isinstance(event, DnnAdded):
            return self._added(event.plan)
        if isinstance(event, DnnAdjusted):  # as the overlay shows it: a thread has no priority
            status = self._statuses[event.dnn]
            self._statuses[event.dnn] = replace(status, constraint_ns=event.constraint_ns)
        if isinstance(event, DnnRemoved):
            self._plans.pop(event.dnn, None)
        if isinstance(event, RenderStarted) and not self._started:
            self._started = True
            return [self._prepare(plan.name) for plan in self._plans.values() if plan.continuous]
        return []

    def _added(self, plan: DnnPlan) -> list[Action]:
        self._plans[plan.name] = plan
        state = "running" if plan.continuous else "idle"
        self._statuses[plan.name] = DnnStatus(plan.name, GPU, state, plan.constraint_ns)
        return [self._prepare(plan.name)] if plan.continuous and self._started else []

    def _prepare(self, dnn: str) -> Prepare:
        self._next += 1
        return Prepare(self._next - 1, dnn, 0)

    def _finished(self, finish: Finish) -> None:
        status, on_gpu = self._statuses[finish.dnn], finish.processor == GPU
        self._statuses[finish.dnn] = replace(
            status,
            processor=finish.processor,
            latency_ns=finish.latency_ns,
            gpu=status.gpu + on_gpu,
            cpu=status.cpu + (not on_gpu),
            misses=status.misses + finish.missed,
        )

    def wake(self, now_ns: int) -> list[Action]:
        """Nothing is ever due."""
        return []

    def next_wakeup_ns(self) -> int | None:
        """Never."""
        return None

    def config(self) -> Mapping[str, Any]:
        """Nothing that could be replayed."""
        return {}

    def snapshot(self, now_ns: int) -> Snapshot:
        """Latencies and counts; there is neither a gap nor a utility."""
        dnns = {name: self._statuses[name] for name in self._plans}
        return Snapshot(now_ns, dnns, Gap(0), 0)
