"""The baselines live: the runs that users know, with threads where the coordinator was."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from heimdall.analyzer.precision import engine_for
from heimdall.coordinator.bystander import Bystander, InferenceEnded
from heimdall.engine.base import Engine
from heimdall.errors import DeviceError
from heimdall.graph.graph import Graph
from heimdall.lab.bench.admission import Free, Gate, OneAtATime, Passage
from heimdall.lab.bench.inference import Inference, Session, WholeNetwork
from heimdall.lab.bench.systems import ALONE, FIRST, Precedence, System
from heimdall.lab.bench.threads import Threads
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.processors import Processors
from heimdall.runtime.execution.protocols import Coordinates, Executes
from heimdall.runtime.opening.setup import Setup
from heimdall.runtime.telemetry.spans import Spans
from heimdall.vocabulary.driver_priority import Level
from heimdall.vocabulary.events import (
    Action,
    Event,
    FrameRendered,
    RenderingStopped,
    RenderStarted,
)
from heimdall.vocabulary.plans import DnnPlan

MODE = "uncoordinated"
_RENDERING = "rendering"


class Witness(Bystander):
    """Lets rendering through the gate, which waits for no thread: what a thread has handed over
    before is what a frame may have to wait for."""

    def __init__(self, gate: Gate, plans: Sequence[DnnPlan], interval_ns: int) -> None:
        super().__init__(plans)
        self._gate, self._interval_ns = gate, interval_ns
        self._rest_ns = 0
        self._rested_ns: int | None = None

    def limit_load(self, limit: float) -> None:
        """Let the GPU rest after each frame, so that the system does not stop it for having worked
        more than that share of a second (see ``SoftwareGpu.load_limit``)."""
        self._rest_ns = round(self._interval_ns * (1.0 - limit))

    def receive(self, event: Event | InferenceEnded, now_ns: int) -> list[Action]:
        if isinstance(event, RenderStarted):
            self._rested_ns = None
            self._gate.ask(_RENDERING, FIRST, _go)
        elif isinstance(event, FrameRendered):
            self._rested_ns = now_ns + self._rest_ns
        elif isinstance(event, RenderingStopped):
            self._rested_ns = now_ns
        return [*super().receive(event, now_ns), *self.wake(now_ns)]

    def wake(self, now_ns: int) -> list[Action]:
        """The GPU has rested."""
        if self._rested_ns is not None and now_ns >= self._rested_ns:
            self._rested_ns = None
            self._gate.leave(_RENDERING)
        return []

    def next_wakeup_ns(self) -> int | None:
        return self._rested_ns


def check_priorities(system: System, setup: Setup) -> None:
    """Raise DeviceError for a system of driver priorities where no driver would draw any sooner for
    them: it would run as ``multithread`` does."""
    if system.sharing is None or not system.sharing.low:
        return
    networks, rendering = map(setup.driver_priorities.__getitem__, ("networks", "rendering"))
    if networks.level is Level.LOW or rendering.level in (Level.HIGH, Level.REALTIME):
        return
    renderer = setup.describe_devices()["renderer"]
    raise DeviceError(
        "no driver here draws before it runs networks, so it would be multithread: "
        f"{setup.gpu_name}: {networks.why}; {renderer}: {rendering.why}"
    )


def _go() -> None:
    """Does nothing: the thread has gone on already."""


class Uncoordinated:
    """A baseline, as a shared GPU takes it: same frames, capture, scene and figures."""

    mode = MODE

    def __init__(self, system: System) -> None:
        self._sharing = system.sharing or ALONE
        ranked = self._sharing.precedence is not Precedence.NONE
        self._gate: Gate = OneAtATime() if ranked else Free()
        self._witness: Witness | None = None
        self.scheduler = system.name
        self.prioritized = self._sharing.low

    def coordinator(self, plans: Sequence[DnnPlan], interval_ns: int) -> Coordinates:
        """One that decides nothing."""
        self._witness = Witness(self._gate, plans, interval_ns)
        return self._witness

    def executor(
        self,
        inbox: queue.SimpleQueue[Any],
        processors: Processors,
        spans: Spans,
        clock: Callable[[], int],
    ) -> Executes:
        """A thread a DNN."""
        if self._witness:
            self._witness.limit_load(processors.load_limit)

        def open_networks(deployment: Deployment) -> list[Inference]:
            return [
                self.network(deployment, stage, processors)
                for stage in range(len(deployment.graphs))
            ]

        drawn = partial(self._gate.leave, _RENDERING)
        return Threads(inbox, open_networks, spans.tracer, self._sharing.admission, drawn)

    def network(self, deployment: Deployment, stage: int, processors: Processors) -> Inference:
        """What a DNN's thread runs at a stage."""
        graph, sharing, plan = deployment.graphs[stage], self._sharing, deployment.plan
        if not sharing.on_gpu:
            return self.alone(graph, processors)
        forced = deployment.dnn.force_fallback
        engine = _engine(processors)
        engine = engine_for(engine, graph, deployment.dnn.precision, forced)
        turn, rank = Passage(self._gate, plan.name), sharing.precedence.rank(plan)
        op_ns = plan.stages[stage].op_ns
        return WholeNetwork(engine, graph, forced, sharing, op_ns, turn, rank)

    def alone(self, graph: Graph, processors: Processors) -> Inference:
        """What a thread runs of which no more is known than its network."""
        sharing = self._sharing
        if not sharing.on_gpu:
            return Session(graph, () if sharing.cores else processors.cores)
        return WholeNetwork(_engine(processors), graph, (), sharing)


def _engine(processors: Processors) -> Engine:
    """One with a queue of its own, which may come with threads."""
    with processors.confined():
        return processors.gpu.beside()
