"""How an uncoordinated thread runs one network: all at once on a queue of its own, with a wait
after every few ops, or in a session of onnxruntime.

At each step the thread is as urgent as the one that does the same in a coordinated run: first in
line while it feeds the GPU and waits for it, second for ops on the CPU (``runtime/executor.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby

import numpy as np
import onnxruntime as ort

from heimdall.analyzer.partition import OpCosts, partition
from heimdall.engine.base import Engine
from heimdall.graph.graph import Graph
from heimdall.system.priority import first_in_line, in_turn, second_in_line
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

    def write(self, inputs: Inputs) -> None:
        """Copy the input tensors to the device."""
        self._network.write(self._state, inputs)

    def run(self) -> None:
        """All ops; returns when the last one has ended."""
        network, state = self._network, self._state
        try:
            for fallback, chunks in groupby(self._chunks, lambda chunk: chunk.fallback):
                (second_in_line if fallback else first_in_line)()
                run = network.run_fallback if fallback else network.run
                for chunk in chunks:
                    run(state, chunk.start, chunk.end)
        finally:
            in_turn()

    def read(self) -> Outputs:
        """Copy the output tensors from the device."""
        return self._network.read(self._state)

    def close(self) -> None:
        """Free its memory."""
        self._network.close()


class Session:
    """A session of onnxruntime as it comes: a thread a core, which spin after each run, and no
    less urgent than other work (a coordinated run's CPU worker only gets what others leave)."""

    processor = CPU
    chunks = 0

    def __init__(self, graph: Graph) -> None:
        self._session = ort.InferenceSession(graph.serialized, providers=["CPUExecutionProvider"])
        self._names = [value.name for value in self._session.get_outputs()]
        self._inputs: Inputs = {}
        self._outputs: Outputs = {}

    def write(self, inputs: Inputs) -> None:
        """There is nothing to copy."""
        self._inputs = inputs

    def run(self) -> None:
        """The whole network."""
        outputs = self._session.run(self._names, dict(self._inputs))
        self._outputs = dict(zip(self._names, outputs, strict=True))

    def read(self) -> Outputs:
        """What the last run gave."""
        return self._outputs

    def close(self) -> None:
        """Nothing to free before it is forgotten."""


Inference = WholeNetwork | Session
