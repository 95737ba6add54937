"""The baselines live: the runtime that users know, with threads where the coordinator was."""

from __future__ import annotations

from typing import Any

from heimdall.app import App
from heimdall.app.options import RunOptions
from heimdall.bench.inference import Inference, Session, WholeNetwork
from heimdall.bench.systems import Kind, System
from heimdall.bench.threads import DnnThread, Threads
from heimdall.coordinator.bystander import Bystander
from heimdall.runtime.executor import Result
from heimdall.runtime.live import Runtime
from heimdall.runtime.setup import Setup
from heimdall.system.faults import Faults
from heimdall.vocabulary.events import (
    Event,
)

MODE = "uncoordinated"


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
