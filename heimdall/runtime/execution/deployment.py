"""A model's networks on every processor that may run them; of an app's DNN, its pipeline and its
plan too."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heimdall.analyzer.partition import Cut
from heimdall.app import DNN
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork
from heimdall.errors import ConfigError
from heimdall.graph.graph import Graph
from heimdall.models.base import Pipeline
from heimdall.runtime.execution.unit_network import UnitNetwork, Whole
from heimdall.schedulers.utility import utility_for
from heimdall.vocabulary.events import DnnAdjusted
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import CPU, GPU, REMOTE

log = logging.getLogger(__name__)

_REST_NS = 500_000_000  # while a DNN is being built, most of the CPU is left to its builder


class Networks:
    """A model's networks, one a stage and processor, and the plan of each stage.

    ``in_use``: a thread that could not be waited for may still run them, so they are not freed.
    """

    in_use = False

    def __init__(
        self,
        name: str,
        graphs: Sequence[Graph],
        stages: Sequence[StagePlan] = (),
        unit_networks: Mapping[str, Sequence[UnitNetwork]] | None = None,
    ) -> None:
        self.name, self.graphs, self._stages = name, graphs, tuple(stages)
        self._unit_networks = dict(unit_networks or {})

    @property
    def stages(self) -> Sequence[StagePlan]:
        """What is known of each stage's units before they run."""
        return self._stages

    @property
    def built(self) -> bool:
        """True if the DNN is on the processor where it is to run, or will be later."""
        return True

    def load(self, processor: str) -> None:
        """Make sure that it can run on ``processor``. Raises ConfigError where it never can."""
        if processor not in self._unit_networks:
            raise ConfigError(f"{self.name} is not on {processor}")

    def has(self, processor: str) -> bool:
        """True if the DNN can run there now."""
        return processor in self._unit_networks

    def unit_network(self, stage: int, processor: str) -> UnitNetwork:
        """A stage's network on a processor."""
        if processor not in self._unit_networks:
            self.load(processor)
        return self._unit_networks[processor][stage]

    def networks(self, processor: str) -> list[LoadedNetwork]:
        """The networks of all stages on a processor."""
        return [each.network for each in self._unit_networks.get(processor, ())]

    def warm_up(self, processor: str) -> None:
        """Run them once, so that they take the memory they need."""
        for unit_network in self._unit_networks[processor]:
            with unit_network.taken() as where:
                unit_network.try_out(where.state)

    def settle(self) -> None:
        """Wait for engines that are still trying them: a request would wait for that, and one that
        waits for a second counts as lost."""
        for unit_networks in self._unit_networks.values():
            for unit_network in unit_networks:
                with unit_network.taken():
                    pass

    def try_out(self, processor: str) -> None:
        """Raise what a processor raises when it runs them."""
        for unit_network in self._unit_networks[processor]:
            unit_network.try_out()

    def partition(self, cut: Cut) -> list[tuple[tuple[int, int], ...]]:
        """The partition of each stage, cut another way."""
        return [cut.apply(stage).chunks for stage in self.stages]

    def close(self) -> None:
        """Free the networks, unless they are still in use."""
        if self.in_use:
            log.warning("%s: still in use: its networks are left in memory", self.name)
            return
        for each in self._unit_networks.values():
            for unit_network in each:
                unit_network.network.close()


class Deployment(Networks):
    """An app's DNN: a pipeline, and a plan that is complete when its networks are profiled.

    One state a network is enough, because a DNN has at most one inference in flight. The CPU's
    networks are loaded in the background when a run starts, or when the DNN first needs them.
    """

    def __init__(self, dnn: DNN, pipeline: Pipeline, graphs: Sequence[Graph], cpu: Engine) -> None:
        super().__init__(dnn.name, graphs)
        self.dnn = dnn
        self.pipeline = pipeline
        self.memory = pipeline.memory(graphs)
        self.plan = DnnPlan(dnn.name, (), round(dnn.constraint_ms * 1e6))
        self._cpu = cpu
        self._remote_ns: list[int] | None = None  # of each stage on the server
        self._planning = threading.Lock()  # it is completed on the thread that loads
        self._loading = threading.Lock()

    @property
    def stages(self) -> Sequence[StagePlan]:
        return self.plan.stages

    @property
    def built(self) -> bool:
        return self.plan.built

    def place(self, processor: str, networks: Sequence[LoadedNetwork]) -> None:
        """Keep these networks, one a stage, for ``processor``. Plans are about the GPU's ops:
        elsewhere each is run whole."""
        self._unit_networks[processor] = [
            UnitNetwork(each, range(ops + 1) if processor == GPU else Whole(ops), alone=True)
            for each, ops in ((each, len(each.ops)) for each in networks)
        ]

    def place_remotely(self, networks: Sequence[LoadedNetwork], ns: Sequence[int]) -> None:
        """Run on the server too, where each stage takes so long."""
        self.place(REMOTE, networks)
        with self._planning:
            self._remote_ns = list(ns)
            self.plan = replace(self.plan, stages=self._with_remote(self.plan.stages))

    def load(self, processor: str) -> None:
        """Make sure the DNN can run on ``processor``; loads on the CPU the first time."""
        if processor != CPU:
            super().load(processor)
            return
        with self._loading:
            if not self.has(CPU):
                self.place(CPU, [self._cpu.load(graph) for graph in self.graphs])

    def begin_on_cpu(self) -> None:
        """Run on the CPU alone until it is placed on the GPU and the plan is complete. What its
        networks take there is measured by one inference."""
        stages = []
        self.load(CPU)
        for unit_network in self._unit_networks[CPU]:
            with unit_network.taken() as where:
                began_ns = time.perf_counter_ns()
                unit_network.try_out(where.state)
                cpu_ns = time.perf_counter_ns() - began_ns
            on_cpu = ((CPU, (cpu_ns,)),)  # nowhere else, whatever a policy would rather have
            stages.append(StagePlan((cpu_ns,), (False,), cpu_ns, 0, ((0, 1),), on=on_cpu))
        plan = plan_of(self.dnn, stages)
        rest_ns = max(plan.min_interval_ns, _REST_NS)
        self.plan = replace(plan, built=False, min_interval_ns=rest_ns)

    def complete(self, stages: Sequence[StagePlan]) -> None:
        """Make the plan, now that the stages are profiled."""
        if self.pipeline.stays:
            stages = [replace(stage, cpu_ns=0) for stage in stages]
        with self._planning:
            self.plan = plan_of(self.dnn, self._with_remote(stages))

    def _with_remote(self, stages: Sequence[StagePlan]) -> tuple[StagePlan, ...]:
        if self._remote_ns is None:
            return tuple(stages)
        pairs = zip(stages, self._remote_ns, strict=True)
        return tuple(replace(stage, remote_ns=ns) for stage, ns in pairs)

    def adjust(self, dnn: DNN) -> DnnAdjusted:
        """Go on with the same networks as ``dnn`` wants them; returns what to tell about it."""
        wishes = wishes_of(dnn)
        with self._planning:
            rest_ns = wishes["min_interval_ns"] if self.plan.built else self.plan.min_interval_ns
            self.dnn = dnn
            self.plan = replace(self.plan, **{**wishes, "min_interval_ns": rest_ns})
        return DnnAdjusted(dnn.name, **wishes)

    @property
    def fallback_ops(self) -> int:
        return sum(op.fallback for network in self.networks(GPU) for op in network.ops)

    @property
    def whole_ns(self) -> int:
        """All stages alone on the GPU, once each, as profiled; without fallback ops. 0 while it is
        not known."""
        return self.plan.gpu_ns if self.plan.built else 0


def plan_of(dnn: DNN, stages: Sequence[StagePlan]) -> DnnPlan:
    """What the coordinator must know of a declared DNN with these profiled stages."""
    return DnnPlan(dnn.name, tuple(stages), continuous=not dnn.on_event, **wishes_of(dnn))


def wishes_of(dnn: DNN) -> dict[str, Any]:
    """How urgently and how often a DNN is wanted: the part of its plan that may change."""
    overrides = {
        name: value
        for name in ("beta", "gamma", "l0", "alpha")
        if (value := getattr(dnn, name)) is not None
    }
    return {
        "priority": dnn.priority,
        "utility": utility_for(dnn.priority, dnn.constraint_ms, **overrides),
        "constraint_ns": round(dnn.constraint_ms * 1e6),
        "min_interval_ns": round(1e9 / dnn.max_rate_hz) if dnn.max_rate_hz else 0,
        "rate_hz": None if dnn.on_event else dnn.rate_hz,
    }
