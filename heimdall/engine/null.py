"""An engine that computes nothing: for tests of everything around the networks.

Outputs are zeros of the right shapes; elapsed times come from given costs, so that a
coordinator driven by it behaves the same on every machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from heimdall.engine.base import Engine, LoadProgress
from heimdall.engine.checks import check_forced, check_inputs, check_range, check_read, node_ops
from heimdall.engine.exits import exits_of
from heimdall.engine.network import LoadedNetwork, Op, State
from heimdall.engine.together import GroupMember, deal, whole_jobs
from heimdall.graph.branches import node_needs
from heimdall.graph.cuts import alive
from heimdall.graph.graph import Graph
from heimdall.vocabulary.processors import GPU

OpCost = int | Callable[[Op], int]  # ns: the same for every op, or computed from the op


class NullEngine(Engine):
    """Costs instead of computation.

    ``op_ns`` is the cost of one op in ns (a number, or a function of the op) and
    ``chunk_cost_ns`` that of each call. ``sleep`` makes calls take that long for real. Parts on
    different ``lanes`` take no longer than the longest of them.
    """

    name = "null"
    cuts_at_any_op = True
    times_ops = True

    def __init__(
        self,
        processor: str = GPU,
        op_ns: OpCost = 100_000,
        chunk_cost_ns: int = 0,
        sleep: bool = False,
        lanes: int = 1,
    ) -> None:
        self.processor, self.lanes = processor, lanes
        self.chunk_cost_ns = chunk_cost_ns
        self.sleep = sleep
        self._op_ns = op_ns

    def op_ns(self, op: Op) -> int:
        """The cost of one op in ns."""
        return self._op_ns(op) if callable(self._op_ns) else self._op_ns

    def load(
        self,
        graph: Graph,
        *,
        force_fallback: Collection[str] = (),
        on_progress: LoadProgress | None = None,
    ) -> NullNetwork:
        check_forced(graph, force_fallback)
        return NullNetwork(self, graph, node_ops(graph, force_fallback))

    def run_together(self, stages: Sequence[Sequence[GroupMember]]) -> int:
        jobs = whole_jobs(self.runs, stages)
        elapsed_ns = self.chunk_cost_ns
        for stage in stages:
            costs = [sum(self.op_ns(part.network.ops[op]) for op in part.ops) for part in stage]
            dealt = deal(costs, self.lanes)
            elapsed_ns += max((sum(costs[part] for part in lane) for lane in dealt), default=0)
        for job in jobs:
            job.state.progress.add(*job.ranges[0])
        if self.sleep:
            time.sleep(elapsed_ns / 1e9)
        return elapsed_ns

    def runs(self, network: LoadedNetwork) -> bool:
        return isinstance(network, NullNetwork) and network.engine is self

    def describe(self) -> Mapping[str, str]:
        return {"device": "none", "driver": "none", "version": "1", "mode": "null"}


class NullNetwork(LoadedNetwork[State]):
    """The ops are the graph's nodes."""

    def __init__(self, engine: NullEngine, graph: Graph, ops: tuple[Op, ...]) -> None:
        self.graph = graph
        self.ops = ops
        self.exits = exits_of(graph.exits, [(node.inputs, node.outputs) for node in graph.nodes])
        self.engine = engine

    def new_state(self) -> State:
        return State()

    def write(self, state: State, inputs: Mapping[str, np.ndarray]) -> None:
        check_inputs(self.graph, inputs)
        state.progress.begin()

    def run(self, state: State, start: int, end: int) -> int:
        return self._advance(state, start, end, fallback=False)

    def run_fallback(self, state: State, start: int, end: int) -> int:
        return self._advance(state, start, end, fallback=True)

    def read(self, state: State, leave: Collection[str] = ()) -> dict[str, np.ndarray]:
        names = check_read(self, state, leave)
        tensors = (self.graph.tensors[name] for name in names)
        return {tensor.name: np.zeros(tensor.some_shape, tensor.dtype) for tensor in tensors}

    @property
    def handovers(self) -> Mapping[int, tuple[str, ...]]:
        if self.exits:  # what is alive depends on the heads that ran
            return {}
        return {op: alive(self.graph, op) for op in range(1, len(self.ops))}

    def hand_over(self, state: State) -> dict[str, np.ndarray]:
        tensors = (self.graph.tensors[name] for name in self.handovers[state.position])
        return {tensor.name: np.zeros(tensor.some_shape, tensor.dtype) for tensor in tensors}

    def take_over(
        self,
        state: State,
        op: int,
        inputs: Mapping[str, np.ndarray],
        tensors: Mapping[str, np.ndarray],
    ) -> None:
        self.write(state, inputs)
        state.progress.begin(op)

    @cached_property
    def needs(self) -> Sequence[frozenset[int]]:
        return node_needs(self.graph)

    def op_times(self, state: State) -> list[int] | None:
        return [self.engine.op_ns(op) for op in self.ops[: max(state.position, 0)]]

    def _advance(self, state: State, start: int, end: int, *, fallback: bool) -> int:
        check_range(self, state, start, end, fallback=fallback)
        state.progress.add(start, end)
        elapsed_ns = self.engine.chunk_cost_ns + sum(map(self.engine.op_ns, self.ops[start:end]))
        if self.engine.sleep:
            time.sleep(elapsed_ns / 1e9)
        return elapsed_ns
