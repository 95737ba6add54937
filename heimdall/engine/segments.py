"""A graph on the CPU in segments: between cuts that another engine offers, each a network's op.

The whole and each segment are sessions of their own, made when the network is loaded: making one
takes up to a second and holds the interpreter for a third of that, frames with it. So other ranges
run segment by segment, which takes a tenth to a third longer than a session of theirs would, for
tensors of the graph are written at each cut.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np

from heimdall.engine.checks import check_inputs, check_range
from heimdall.engine.fallback import FallbackOps
from heimdall.engine.network import LoadedNetwork, Op, State
from heimdall.graph.cuts import between
from heimdall.graph.graph import Graph


class SegmentState(State):
    """The inputs, the tensors at the last cut, and which segment is next (-1: no input yet)."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: dict[str, np.ndarray] = {}
        self.values: Mapping[str, np.ndarray] = {}


class SegmentedNetwork(LoadedNetwork[SegmentState]):
    """``cuts[i]``: the tensors that are alive before segment i + 1. Without cuts: one segment."""

    def __init__(
        self, graph: Graph, cuts: Sequence[Collection[str]] = (), threads: int = 1
    ) -> None:
        outputs = [tensor.name for tensor in graph.outputs]
        self.graph = graph
        self._edges: list[tuple[str, ...]] = [(), *map(tuple, cuts), tuple(outputs)]
        self.ops = tuple(self._op(index) for index in range(len(cuts) + 1))
        self._segments = [self._session(*each, threads) for each in pairwise(self._edges)]
        self._whole = self._session((), outputs, threads) if cuts else self._segments[0]

    def _op(self, index: int) -> Op:
        nodes, _ = between(self.graph, self._edges[index], self._edges[index + 1])
        return Op.of(self.graph, nodes, f"{self.graph.name} [{index}]", "segment")

    def new_state(self) -> SegmentState:
        return SegmentState()

    def write(self, state: SegmentState, inputs: Mapping[str, np.ndarray]) -> None:
        check_inputs(self.graph, inputs)
        state.inputs = {name: np.array(array, order="C") for name, array in inputs.items()}
        state.values = {}
        state.progress.begin()

    def run(self, state: SegmentState, start: int, end: int) -> int:
        check_range(self, state, start, end)
        if start == end:
            return 0
        whole = end - start == len(self.ops)
        began_ns = time.perf_counter_ns()
        known = {**state.inputs, **state.values}
        for session in [self._whole] if whole else self._segments[start:end]:
            known.update(session.run(known))
        elapsed_ns = time.perf_counter_ns() - began_ns
        state.values = {name: known[name] for name in self._edges[end]}
        state.progress.add(start, end)
        return elapsed_ns

    def run_fallback(self, state: SegmentState, start: int, end: int) -> int:
        check_range(self, state, start, end, fallback=True)
        return 0

    def read(self, state: SegmentState, leave: Collection[str] = ()) -> dict[str, np.ndarray]:
        check_range(self, state, len(self.ops), len(self.ops))
        return {name: each for name, each in state.values.items() if name not in leave}

    @property
    def handovers(self) -> Mapping[int, tuple[str, ...]]:
        return dict(enumerate(self._edges[1:-1], 1))

    def hand_over(self, state: SegmentState) -> dict[str, np.ndarray]:
        if state.position not in self.handovers:
            raise ValueError(f"{self.graph.name} is before segment {state.position}: no handover")
        return dict(state.values)

    def take_over(
        self,
        state: SegmentState,
        op: int,
        inputs: Mapping[str, np.ndarray],
        tensors: Mapping[str, np.ndarray],
    ) -> None:
        self.write(state, inputs)
        state.values = {name: tensors[name] for name in self.handovers[op]}
        state.progress.begin(op)

    def _session(
        self, given: Collection[str], wanted: Collection[str], threads: int
    ) -> FallbackOps:
        nodes, read = between(self.graph, given, wanted)
        made = {name for node in nodes for name in node.outputs}
        outputs = [name for name in wanted if name in made]
        return FallbackOps(self.graph, [node.name for node in nodes], read, outputs, threads)
