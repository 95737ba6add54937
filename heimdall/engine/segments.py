"""A graph on the CPU in segments: between cuts that another engine offers, each a network's op.

Any range of segments is a session of its own, made when it is first asked for: onnxruntime then
optimises it as a whole, and leaves tensors of the graph at both ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from heimdall.engine.checks import check_inputs, check_range
from heimdall.engine.fallback import FallbackOps
from heimdall.engine.network import LoadedNetwork, Op, State
from heimdall.graph.cuts import between
from heimdall.graph.graph import Graph

CACHED_BYTES = 512 << 20  # of weights in one network's sessions, of which it keeps two at least


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
        self._threads = threads
        self._sessions: dict[tuple[int, int], tuple[FallbackOps, int]] = {}  # with their weights
        self._lock = threading.Lock()

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
        session = self._session(start, end)
        began_ns = time.perf_counter_ns()
        known = {**state.inputs, **state.values}
        made = session.run(known)
        elapsed_ns = time.perf_counter_ns() - began_ns
        known.update(made)
        state.values = {name: known[name] for name in self._edges[end]}
        state.progress.add(start, end)
        return elapsed_ns

    def run_fallback(self, state: SegmentState, start: int, end: int) -> int:
        check_range(self, state, start, end, fallback=True)
        return 0

    def read(self, state: SegmentState) -> dict[str, np.ndarray]:
        check_range(self, state, len(self.ops), len(self.ops))
        return dict(state.values)

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

    def prepare(self, start: int, end: int) -> None:
        """Make the session of a range now rather than when it is first run."""
        self._session(start, end)

    def _session(self, start: int, end: int) -> FallbackOps:
        with self._lock:
            session, size = self._sessions.get((start, end)) or self._opened(start, end)
            self._sessions.pop((start, end), None)
            self._sessions[start, end] = session, size  # the newest last
            held = sum(size for _, size in self._sessions.values())
            while held > CACHED_BYTES and len(self._sessions) > 2:
                oldest = next(iter(self._sessions))
                held -= self._sessions.pop(oldest)[1]
            return session

    def _opened(self, start: int, end: int) -> tuple[FallbackOps, int]:
        given, wanted = self._edges[start], self._edges[end]
        nodes, read = between(self.graph, given, wanted)
        made = {name for node in nodes for name in node.outputs}
        names = [node.name for node in nodes]
        outputs = [name for name in wanted if name in made]
        session = FallbackOps(self.graph, names, read, outputs, self._threads)
        used = {name for node in nodes for name in node.inputs if name in self.graph.constants}
        return session, sum(self.graph.constants[name].nbytes for name in used)

    def close(self) -> None:
        with self._lock:
            self._sessions.clear()
