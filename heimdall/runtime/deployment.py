"""One DNN of an app, ready to run: its pipeline, its networks on both processors, its plan."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heimdall.analyzer.profile import recut
from heimdall.app import DNN
from heimdall.engine.base import Engine, Network, State
from heimdall.graph.graph import Graph
from heimdall.models.base import Pipeline
from heimdall.schedulers.utility import utility_for
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import CPU, GPU

log = logging.getLogger(__name__)

_REST_NS = 500_000_000  # while a DNN is being built, most of the CPU is left to who builds it


class Deployment:
    """A DNN's networks, one a stage and processor, each with one state.

    One state is enough because a DNN has at most one inference in flight. The CPU's networks
    are loaded in the background when a run starts, or when the DNN first needs them.

    ``in_use``: a thread that could not be waited for may still run them, so they are not freed.
    """

    in_use = False

    def __init__(self, dnn: DNN, pipeline: Pipeline, graphs: Sequence[Graph], cpu: Engine) -> None:
        self.dnn = dnn
        self.pipeline = pipeline
        self.graphs = graphs
        self.plan = DnnPlan(dnn.name, (), round(dnn.constraint_ms * 1e6))
        self._cpu = cpu
        self._loaded: dict[str, list[tuple[Network, State]]] = {}

    def place(self, processor: str, networks: Sequence[Network]) -> None:
        """Keep these networks, one a stage, for ``processor``."""
        self._loaded[processor] = [(network, network.new_state()) for network in networks]

    def load(self, processor: str) -> None:
        """Make sure the DNN can run on ``processor``; loads on the CPU the first time."""
        if processor == CPU and CPU not in self._loaded:
            self.place(CPU, [self._cpu.load(graph) for graph in self.graphs])

    def warm_up(self, processor: str) -> None:
        """Run the networks once, so that they take the memory they need."""
        for network, state in self._loaded[processor]:
            _run_on_zeros(network, state)

    def networks(self, processor: str) -> list[Network]:
        """The networks of all stages on a processor."""
        return [network for network, _ in self._loaded[processor]]

    def network(self, stage: int, processor: str) -> tuple[Network, State]:
        """The network of a stage on a processor, and its state."""
        self.load(processor)
        return self._loaded[processor][stage]

    def begin_on_cpu(self) -> None:
        """Run on the CPU alone until it is placed on the GPU and the plan is complete. What its
        networks take there is measured by one inference."""
        stages = []
        self.load(CPU)
        for network, state in self._loaded[CPU]:
            began_ns = time.perf_counter_ns()
            _run_on_zeros(network, state)
            cpu_ns = time.perf_counter_ns() - began_ns
            stages.append(StagePlan((cpu_ns,), (False,), cpu_ns, 0, ((0, 1),)))
        plan = plan_of(self.dnn, stages)
        rest_ns = max(plan.min_interval_ns, _REST_NS)
        self.plan = replace(plan, built=False, min_interval_ns=rest_ns)

    def complete(self, stages: Sequence[StagePlan]) -> None:
        """Make the plan, now that the stages are profiled."""
        self.plan = plan_of(self.dnn, stages)

    def partition(self, gap_ns: int) -> list[tuple[tuple[int, int], ...]]:
        """The static partition of each stage for another gap."""
        return [recut(stage, gap_ns) for stage in self.plan.stages]

    @property
    def fallback_ops(self) -> int:
        return sum(op.fallback for network, _ in self._loaded.get(GPU, ()) for op in network.ops)

    @property
    def whole_ns(self) -> int:
        """All stages alone on the GPU, once each, as profiled; without fallback ops. 0 while it is
        not known."""
        return self.plan.gpu_ns if self.plan.built else 0

    def close(self) -> None:
        """Free the networks, unless they are still in use."""
        if self.in_use:
            log.warning("%s: still in use: its networks are left in memory", self.dnn.name)
            return
        for loaded in self._loaded.values():
            for network, _ in loaded:
                network.close()


def _run_on_zeros(network: Network, state: State) -> None:
    zeros = {each.name: np.zeros(each.shape, each.dtype) for each in network.inputs}
    network.write(state, zeros)
    network.run(state, 0, len(network.ops))


def plan_of(dnn: DNN, stages: Sequence[StagePlan]) -> DnnPlan:
    """What the coordinator must know of a declared DNN with these profiled stages."""
    overrides = {
        name: value
        for name in ("beta", "gamma", "l0", "alpha")
        if (value := getattr(dnn, name)) is not None
    }
    return DnnPlan(
        name=dnn.name,
        stages=tuple(stages),
        constraint_ns=round(dnn.constraint_ms * 1e6),
        utility=utility_for(dnn.priority, dnn.constraint_ms, **overrides),
        min_interval_ns=round(1e9 / dnn.max_rate_hz) if dnn.max_rate_hz else 0,
        continuous=not dnn.on_event,
        priority=dnn.priority,
        rate_hz=None if dnn.on_event else dnn.rate_hz,
    )
