"""The coordinator of the baselines: it starts what is wanted, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heimdall.coordinator.snapshot import DnnStatus, GapStats, Snapshot
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

    def __init__(self, plans: Sequence[DnnPlan] = ()) -> None:
        self.faults = Faults()
        self._plans = {plan.name: plan for plan in plans}
        self._last: dict[str, Finish] = {}
        self._counts = dict.fromkeys(self._plans, 0)
        self._misses = dict.fromkeys(self._plans, 0)
        self._started = False
        self._next = 0  # job

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
            plan = self._plans[event.dnn]
            self._plans[event.dnn] = replace(plan, constraint_ns=event.constraint_ns)
        if isinstance(event, DnnRemoved):
            self._plans.pop(event.dnn, None)
        if isinstance(event, RenderStarted) and not self._started:
            self._started = True
            return [self._prepare(plan.name) for plan in self._plans.values() if plan.continuous]
        return []

    def _added(self, plan: DnnPlan) -> list[Action]:
        self._plans[plan.name] = plan
        self._last.pop(plan.name, None)  # of another one, that had the name before
        self._counts[plan.name] = self._misses[plan.name] = 0
        return [self._prepare(plan.name)] if plan.continuous and self._started else []

    def _prepare(self, dnn: str) -> Prepare:
        self._next += 1
        return Prepare(self._next - 1, dnn, 0)

    def _finished(self, finish: Finish) -> None:
        self._last[finish.dnn] = finish
        self._counts[finish.dnn] += 1
        self._misses[finish.dnn] += finish.missed

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
        dnns = {name: self._status(plan) for name, plan in self._plans.items()}
        return Snapshot(now_ns, dnns, GapStats(0, 0, 0, 0, 0, 0), 0)

    def _status(self, plan: DnnPlan) -> DnnStatus:
        last = self._last.get(plan.name)
        processor = last.processor if last else GPU
        count = self._counts[plan.name]
        return DnnStatus(
            name=plan.name,
            processor=processor,
            moving_to="",
            state="running" if plan.continuous else "idle",
            latency_ns=last.latency_ns if last else None,
            constraint_ns=plan.constraint_ns,
            utility=None,
            reason="",
            gpu=count if processor == GPU else 0,
            cpu=0 if processor == GPU else count,
            misses=self._misses[plan.name],
            failures=0,
            expected_gpu_ns=0,
            expected_cpu_ns=0,
        )
