"""What an engine makes of a graph: a network, whose ops run range by range for jobs.

An *op* here is what the engine executes after its own lowering (a fused convolution, say);
``Op.nodes`` leads back to the ONNX nodes. A range ``[start, end)`` of ops run without
preemption is a chunk: the ``RunPartial(startIdx, endIdx)`` of the Heimdall paper, section 8.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, TypeVar

import numpy as np

from heimdall.engine.exits import OpCursor
from heimdall.graph.costs import node_bytes, node_flops
from heimdall.graph.cuts import Held, held
from heimdall.graph.graph import Graph, Node, Tensor
from heimdall.vocabulary.plans import Exit

S = TypeVar("S", bound="State")


@dataclass(frozen=True)
class Op:
    """One schedulable unit of a loaded network.

    ``fallback`` marks an op this engine cannot run: the pool runs it on the CPU, at its place
    in the order (section 7.2). ``flops`` counts a multiply-add as two; ``bytes`` is what must
    be read and written at least once.
    """

    name: str
    kind: str
    nodes: tuple[str, ...]
    fallback: bool = False
    flops: int = 0
    bytes: int = 0

    @classmethod
    def of(
        cls, graph: Graph, nodes: Sequence[Node], name: str, kind: str, fallback: bool = False
    ) -> Op:
        """Some nodes of a graph."""
        flops = sum(node_flops(graph, node) for node in nodes)
        size = sum(node_bytes(graph, node) for node in nodes)
        return cls(name, kind, tuple(node.name for node in nodes), fallback, flops, size)


@dataclass(frozen=True)
class Memory:
    """What a network takes on its device: weights, shared by all networks of one graph, and
    the activations of each State (the peak: tensors that are not needed at once share room)."""

    weights_bytes: int
    activation_bytes: int


class State:  # engines keep what they need
    """The activations of one job in flight. They survive between calls of ``LoadedNetwork.run``."""

    def __init__(self) -> None:
        self.progress = OpCursor()

    @property
    def position(self) -> int:
        """The op that is next; -1 before the first ``LoadedNetwork.write``."""
        return self.progress.position


class LoadedNetwork(ABC, Generic[S]):
    """A graph loaded on an engine; ``S``: the kind of its states. Thread-safe as long as each State
    is used by one thread."""

    graph: Graph
    ops: tuple[Op, ...]
    # Its variants over ``ops``, least accurate first, the whole network last. Empty: all ops run.
    exits: tuple[Exit, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.graph.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self.graph.outputs

    @abstractmethod
    def new_state(self) -> S:
        """Allocate the activations of one job."""

    @abstractmethod
    def write(self, state: S, inputs: Mapping[str, np.ndarray]) -> None:
        """Set the input tensors (NCHW or whatever the graph declares) and rewind to op 0. Those
        that ``keep`` gave may be among them.

        Raises ModelError when a name, shape or type does not match ``inputs``.
        """

    @abstractmethod
    def run(self, state: S, start: int, end: int) -> int:
        """Run ops ``[start, end)`` and wait; return the elapsed time on the processor in ns.

        Ranges are run in order, each once; ops that only early exits need (``exits``) may be
        left out. The range may not contain fallback ops (ValueError); those go through
        ``run_fallback``.
        """

    def run_parts(
        self, state: S, start: int, ends: Sequence[int], go_on: Callable[[int], bool]
    ) -> tuple[int, int]:
        """Run ops from ``start`` to ``ends[-1]`` in parts that end at ``ends``, or fewer of them;
        return where it stopped and the elapsed time in ns.

        ``go_on(i)`` is asked before part i >= 2 is started, as soon as part i - 2 has ended: part
        i - 1 runs meanwhile, so that the processor does not pause. An engine that does not declare
        ``ends_early`` asks nothing and runs all parts.
        """
        return ends[-1], self.run(state, start, ends[-1])

    @abstractmethod
    def run_fallback(self, state: S, start: int, end: int) -> int:
        """Run the fallback ops ``[start, end)`` on the CPU, callable from a pool thread;
        return the elapsed ns. Copies between processors are included."""

    @abstractmethod
    def read(self, state: S, leave: Collection[str] = ()) -> dict[str, np.ndarray]:
        """The output tensors, in the graph's shapes, but for those to ``leave``; valid after the
        last op has run. Of a network with exits: those that were computed, once all ops of an exit
        have run."""

    def keep(self, state: S, names: Collection[str]) -> Mapping[str, Any]:
        """Some outputs for the next inference, whose ``write`` takes them where they are; to
        everyone else they are arrays (``numpy.asarray``). Default: they are arrays."""
        others = [each.name for each in self.outputs if each.name not in names]
        return self.read(state, leave=others) if names else {}

    def infer(self, state: S, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """A whole inference, ops that fall back to the CPU included."""
        self.write(state, inputs)
        self.run_any(state, 0, len(self.ops))
        return self.read(state)

    def run_any(self, state: S, start: int, end: int) -> int:
        """Run ops ``[start, end)``, those that fall back to the CPU included; the elapsed ns."""
        elapsed_ns = 0
        for fallback, run in groupby(self.ops[start:end], lambda op: op.fallback):
            stop = start + sum(1 for _ in run)
            elapsed_ns += (self.run_fallback if fallback else self.run)(state, start, stop)
            start = stop
        return elapsed_ns

    def held(self) -> list[Held]:
        """What a job that stops before each op keeps of what it has computed."""
        return held(self.graph, [op.nodes for op in self.ops])

    @property
    def handovers(self) -> Mapping[int, tuple[str, ...]]:
        """Where a job may go on elsewhere: before which ops, neither the first nor past the last,
        and which tensors of the graph another processor needs for the rest, besides the inputs.
        Empty for an engine that cannot hand over."""
        return {}

    def hand_over(self, state: S) -> dict[str, np.ndarray]:
        """The tensors that ``handovers`` names where a job has got to, in the graph's shapes."""
        raise ValueError(f"{self.graph.name} cannot be handed over by this engine")

    def take_over(
        self, state: S, op: int, inputs: Mapping[str, np.ndarray], tensors: Mapping[str, np.ndarray]
    ) -> None:
        """Go on before ``op`` with the ``inputs`` and ``tensors`` of a job from elsewhere."""
        raise ValueError(f"{self.graph.name} cannot be taken over by this engine")

    @property
    def needs(self) -> Sequence[frozenset[int]]:
        """Of each op the ops before it that it waits for; ``heimdall.graph.branches`` tells which
        may run together. An engine that cannot tell runs them in their order."""
        return [frozenset({op - 1} if op else ()) for op in range(len(self.ops))]

    def op_times(self, state: S) -> list[int] | None:
        """Device time in ns of each op since ``write``; None unless the engine ``times_ops``, and
        where it has run several ops as one: a range of one op is always timed."""
        return None

    def longest_enqueue_ns(self, state: S) -> int | None:
        """The longest time since ``write`` that the device could not be interrupted, where the
        engine can tell: what an urgent job waits for at worst."""
        return None

    @property
    def memory(self) -> Memory | None:
        """Where the engine can tell."""
        return None

    @property
    def tuned(self) -> bool:
        """False where ``Engine.tune`` was never run on this machine and would find something to
        choose."""
        return True

    def close(self) -> None:
        """Free device memory."""
