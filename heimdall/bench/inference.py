"""How an uncoordinated thread runs one network: all at once on a queue of its own, with a wait
after every few ops, or in a session of onnxruntime."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import onnxruntime as ort

from heimdall.analyzer.partition import OpCosts, partition
from heimdall.engine.base import Engine
from heimdall.graph.graph import Graph
from heimdall.vocabulary.processors import CPU, GPU

Inputs = Mapping[str, np.ndarray]
Outputs = Mapping[str, np.ndarray]


class WholeNetwork:
    """Enqueues all ops up to the next fallback op at once and waits, as MACE does (Algorithm 1
    of the Heimdall paper); with ``ops``, waits after every so many of them too (section 9.1).

    ``engine`` is not shared with another thread.
    """

    processor = GPU

    def __init__(
        self, engine: Engine, graph: Graph, force_fallback: Collection[str], ops: int | None = None
    ) -> None:
        self._network = engine.load(graph, force_fallback=force_fallback)
        self._state = self._network.new_state()
        marks = tuple(op.fallback for op in self._network.ops)
        costs = OpCosts((0,) * len(marks), marks)
        if ops is None:
            self._chunks = partition(costs, 1, "whole")
        else:
            self._chunks = partition(costs, 1, "fixed", ops_per_chunk=ops)
        self.chunks = sum(not chunk.fallback for chunk in self._chunks)

    def __call__(self, inputs: Inputs) -> Outputs:
        network, state = self._network, self._state
        network.write(state, inputs)
        for chunk in self._chunks:
            run = network.run_fallback if chunk.fallback else network.run
            run(state, chunk.start, chunk.end)
        return network.read(state)

    def close(self) -> None:
        """Free its memory."""
        self._network.close()


class Session:
    """A session of onnxruntime as it comes: a thread a core, which spin after each run."""

    processor = CPU
    chunks = 0

    def __init__(self, graph: Graph) -> None:
        self._session = ort.InferenceSession(graph.serialized, providers=["CPUExecutionProvider"])
        self._names = [value.name for value in self._session.get_outputs()]

    def __call__(self, inputs: Inputs) -> Outputs:
        return dict(zip(self._names, self._session.run(self._names, dict(inputs)), strict=True))

    def close(self) -> None:
        """Nothing to free before it is forgotten."""


Inference = WholeNetwork | Session
