"""The baselines live: the runs that users know, with threads where the coordinator was."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

from heimdall.analyzer.precision import engine_for
from heimdall.bench.inference import Inference, Session, WholeNetwork
from heimdall.bench.systems import Kind, System
from heimdall.bench.threads import Threads
from heimdall.coordinator.bystander import Bystander
from heimdall.runtime.deployment import Deployment
from heimdall.runtime.processors import Processors
from heimdall.runtime.protocols import Coordinates, Executes
from heimdall.runtime.telemetry.spans import Spans
from heimdall.vocabulary.plans import DnnPlan

MODE = "uncoordinated"


class Uncoordinated:
    """A baseline, as a station takes it: same frames, capture, scene and figures."""

    mode = MODE

    def __init__(self, system: System) -> None:
        self._system = system
        self.scheduler = system.name

    def coordinator(self, plans: Sequence[DnnPlan], interval_ns: int) -> Coordinates:
        """Nobody decides."""
        return Bystander(plans)

    def executor(
        self,
        inbox: queue.SimpleQueue[Any],
        processors: Processors,
        spans: Spans,
        clock: Callable[[], int],
    ) -> Executes:
        """A thread a DNN."""

        def open_networks(deployment: Deployment) -> list[Inference]:
            return [
                self._network(deployment, stage, processors)
                for stage in range(len(deployment.graphs))
            ]

        return Threads(inbox, open_networks, spans.tracer)

    def _network(self, deployment: Deployment, stage: int, processors: Processors) -> Inference:
        graph = deployment.graphs[stage]
        if self._system.kind is Kind.MULTITHREAD_ONNXRUNTIME:
            return Session(graph)
        with processors.confined():  # a queue may come with threads
            engine = processors.gpu.beside()
        forced = deployment.dnn.force_fallback
        engine = engine_for(engine, graph, deployment.dnn.precision, forced)
        return WholeNetwork(engine, graph, forced, self._system.ops)
