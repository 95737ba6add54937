"""How an uncoordinated thread runs one network: all at once on a queue of its own, a little at a
time, or in a session of onnxruntime.

At each step the thread is as urgent as the one that does the same in a coordinated run: first in
line while it feeds the GPU and waits for it, second for ops on the CPU (``execution/executor.py``).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

import numpy as np
import onnxruntime as ort

from heimdall.analyzer.partition import Chunk, partition
from heimdall.engine.base import Engine
from heimdall.graph.graph import Graph
from heimdall.lab.bench.admission import Free, Passage
from heimdall.lab.bench.systems import ALONE, Sharing
from heimdall.system.priority import first_in_line, in_turn, second_in_line
from heimdall.system.softgpu import restored_afterwards
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU

Inputs = Mapping[str, np.ndarray]
Outputs = Mapping[str, np.ndarray]


class WholeNetwork:
    """Enqueues all ops up to the next fallback op at once and waits, as MACE does (Algorithm 1
    of the Heimdall paper), or as ``sharing`` says: waits after every few ops too (section 9.1), or
    hands a part over when the one before the last has ended, and only while it has the GPU's
    ``turn`` with its ``rank``. ``op_ns``: what its ops take, by which parts are cut.

    ``engine`` is not shared with another thread.
    """

    processor = GPU

    def __init__(
        self,
        engine: Engine,
        graph: Graph,
        force_fallback: Collection[str],
        sharing: Sharing = ALONE,
        op_ns: Sequence[int] = (),
        turn: Passage | None = None,
        rank: float = 0.0,
    ) -> None:
        self._network = engine.load(graph, force_fallback=force_fallback)
        self._state = self._network.new_state()
        self._turn, self._rank = turn or Passage(Free(), graph.name), rank
        marks = tuple(op.fallback for op in self._network.ops)
        plan = StagePlan((0,) * len(marks), marks, 0, 0)
        if sharing.wait_ops is None:
            self._chunks = partition(plan, 1, "whole")
        else:
            self._chunks = partition(plan, 1, "fixed", ops_per_chunk=sharing.wait_ops)
        self._ends = [_part_ends(chunk, sharing, op_ns) for chunk in self._chunks]
        self.chunks = sum(not chunk.fallback for chunk in self._chunks)

    def write(self, inputs: Inputs) -> None:
        """Copy the input tensors to the device."""
        self._network.write(self._state, inputs)

    def run(self) -> None:
        """All ops; returns when the last one has ended."""
        try:
            for chunk, ends in zip(self._chunks, self._ends, strict=True):
                if chunk.fallback:
                    second_in_line()
                    self._network.run_fallback(self._state, chunk.start, chunk.end)
                else:
                    first_in_line()
                    self._run(chunk.start, ends)
        finally:
            in_turn()

    def _run(self, start: int, ends: Sequence[int]) -> None:
        """Ops on the GPU, as soon as it is this thread's turn, and while it is."""
        self._turn.enter(self._rank)
        try:
            self._network.run_parts(self._state, start, ends, self._go_on)
        finally:
            self._turn.leave()

    def _go_on(self, part: int) -> bool:
        self._turn.give_way(self._rank)
        return True

    def read(self) -> Outputs:
        """Copy the output tensors from the device."""
        return self._network.read(self._state)

    def close(self) -> None:
        """Free its memory."""
        self._network.close()


class Session:
    """A session of onnxruntime with a thread on each of ``cores``, or a single one; no less urgent
    than other work (a coordinated run's CPU worker only gets what others leave). Its threads do not
    spin when they have nothing to do: the neighbours would pay for it."""

    processor = CPU
    chunks = 0

    def __init__(self, graph: Graph, cores: Collection[int] = ()) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = max(1, len(cores))
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        with restored_afterwards():
            if cores and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, cores)  # threads that are made now inherit it
            self._session = ort.InferenceSession(
                graph.serialized, options, providers=["CPUExecutionProvider"]
            )
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


def _part_ends(chunk: Chunk, sharing: Sharing, op_ns: Sequence[int]) -> list[int]:
    """Where the parts of a chunk end. Two of them may be with the GPU at once, so each is half of
    what may be."""
    if sharing.most_ops is not None:
        ends = range(chunk.start, chunk.end, sharing.most_ops // 2)
        return [*ends[1:], chunk.end]
    if sharing.batch_ns is None:
        return [chunk.end]
    sums = [0, *accumulate(op_ns)]
    start, parts = chunk.start, []
    while start < chunk.end:
        until_ns = sums[start] + sharing.batch_ns // 2
        start = max(bisect_right(sums, until_ns, start + 1, chunk.end + 1) - 1, start + 1)
        parts.append(start)
    return parts
