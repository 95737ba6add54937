"""The coordinator of the baselines: it starts what is wanted, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heimdall.coordinator.snapshot import DnnStatus, GapStats, Snapshot
from heimdall.vocabulary.events import (
    Action,
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
        self._plans = {plan.name: plan for plan in plans}
        self._last: dict[str, Finish] = {}
        self._counts = dict.fromkeys(self._plans, 0)
        self._misses = dict.fromkeys(self._plans, 0)
        self._started = False

    def receive(self, event: Event | InferenceEnded, now_ns: int) -> list[Action]:
        """Requests as they come; with the first frame, one to every continuous DNN."""
        if isinstance(event, InferenceRequested):
            return [Prepare(0, event.dnn, 0)]
        if isinstance(event, InferenceEnded):
            self._finished(event.finish)
            return [event.finish]
        if isinstance(event, DnnRemoved):
            del self._plans[event.dnn]
        if isinstance(event, RenderStarted) and not self._started:
            self._started = True
            return [Prepare(0, plan.name, 0) for plan in self._plans.values() if plan.continuous]
        return []

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
