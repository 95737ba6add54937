"""The baselines live: the runtime that users know, with threads where the coordinator was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heimdall.app import App
from heimdall.app.options import RunOptions
from heimdall.bench.inference import Inference, Session, WholeNetwork
from heimdall.bench.systems import Kind, System
from heimdall.bench.threads import DnnThread, Threads
from heimdall.coordinator.snapshot import DnnStatus, GapStats, Snapshot
from heimdall.runtime.executor import Result
from heimdall.runtime.live import Runtime
from heimdall.runtime.setup import Setup
from heimdall.system.faults import Faults
from heimdall.vocabulary.events import (
    Action,
    Event,
    Finish,
    InferenceRequested,
    Prepare,
    RenderStarted,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import GPU

MODE = "uncoordinated"


class Bystander:
    """In the place of the Coordinator: asks continuous DNNs to start, passes requests on, and
    decides nothing."""

    decisions = 0

    def __init__(self, plans: Sequence[DnnPlan]) -> None:
        self._plans = {plan.name: plan for plan in plans}
        self._last: dict[str, Finish] = {}
        self._counts = dict.fromkeys(self._plans, 0)
        self._misses = dict.fromkeys(self._plans, 0)
        self._started = False

    def receive(self, event: Event, now_ns: int) -> list[Action]:
        """Requests as they come; with the first frame, one to every continuous DNN."""
        if isinstance(event, InferenceRequested):
            return [Prepare(0, event.dnn, 0)]
        if isinstance(event, RenderStarted) and not self._started:
            self._started = True
            return [Prepare(0, plan.name, 0) for plan in self._plans.values() if plan.continuous]
        return []

    def finished(self, finish: Finish) -> None:
        """An inference has ended."""
        self._last[finish.dnn] = finish
        self._counts[finish.dnn] += 1
        self._misses[finish.dnn] += finish.missed

    def wake(self, now_ns: int) -> list[Action]:
        return []

    def next_wakeup_ns(self) -> int | None:
        return None

    def config(self) -> Mapping[str, Any]:
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


class UncoordinatedRuntime(Runtime):
    """One run of one app under a baseline: same frames, capture, scene and figures."""

    def __init__(self, app: App, options: RunOptions, setup: Setup, system: System) -> None:
        self._system = system
        super().__init__(app, options, setup)

    def _open_coordinator(self) -> Any:
        return Bystander([deployment.plan for deployment in self._setup.deployments.values()])

    def _open_executor(self) -> Any:
        faults = Faults()
        threads = {
            name: DnnThread(
                deployment,
                [self._network(name, stage) for stage in range(len(deployment.graphs))],
                self._newest,
                self._inbox,
                faults,
                self._tracker.renew,
                self._tracer,
            )
            for name, deployment in self._setup.deployments.items()
        }
        return Threads(threads, faults)

    def _network(self, dnn: str, stage: int) -> Inference:
        deployment, processors = self._setup.deployments[dnn], self._setup.processors
        graph = deployment.graphs[stage]
        if self._system.kind is Kind.MULTITHREAD_ONNXRUNTIME:
            return Session(graph)
        with processors.confined():  # a queue may come with threads
            engine = processors.gpu.beside()
        return WholeNetwork(engine, graph, deployment.dnn.force_fallback, self._system.ops)

    def _handle(self, message: Event | Result) -> None:
        if isinstance(message, Result):
            self._figures.dnns[message.dnn].finished(message.finish)
            self._coordinator.finished(message.finish)  # type: ignore[attr-defined]
        super()._handle(message)

    def _finish(self) -> dict[str, Any]:
        """Nobody knows how long the GPU worked for whom, or of a gap."""
        summary = super()._finish()
        gpu = {**summary["gpu"], "busy_ms": None}
        named = {"scheduler": self._system.name, "mode": MODE}
        return {**summary, **named, "gpu": gpu, "gap_utilization": None}
