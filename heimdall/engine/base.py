"""The small contract every engine meets: load a graph, then run ranges of its ops.

An *op* here is what the engine executes after its own lowering (a fused convolution, say);
``Op.nodes`` leads back to the ONNX nodes. A range ``[start, end)`` of ops run without
preemption is a chunk: the ``RunPartial(startIdx, endIdx)`` of the Heimdall paper, section 8.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from heimdall.engine.exits import Progress
from heimdall.engine.together import Part, whole_jobs
from heimdall.errors import DeviceError
from heimdall.graph.cuts import Held, held
from heimdall.graph.graph import Graph, Tensor
from heimdall.vocabulary.enums import Precision
from heimdall.vocabulary.plans import Exit

LoadProgress = Callable[[int, int], None]  # steps done, steps in all


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


@dataclass(frozen=True)
class PassOp:
    """An op between two passes of an engine's compiler: not yet what is scheduled."""

    kind: str
    output: str
    shape: tuple[int, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """What a network takes on its device: weights, shared by all networks of one graph, and
    the activations of each State (the peak: tensors that are not needed at once share room)."""

    weights_bytes: int
    activation_bytes: int


class Tried(NamedTuple):
    """What came of trying other kernels for one kind of layer: its time before and now, and how
    many of them computed something else, which are never chosen."""

    before_ns: int
    after_ns: int
    wrong: int = 0


class State:  # engines keep what they need
    """The activations of one job in flight. They survive between calls of ``Network.run``."""

    def __init__(self) -> None:
        self.progress = Progress()

    @property
    def position(self) -> int:
        """The op that is next; -1 before the first ``Network.write``."""
        return self.progress.position


class Network(ABC):
    """A graph loaded on an engine. Thread-safe as long as each State is used by one thread."""

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
    def new_state(self) -> State:
        """Allocate the activations of one job."""

    @abstractmethod
    def write(self, state: State, inputs: Mapping[str, np.ndarray]) -> None:
        """Set the input tensors (NCHW or whatever the graph declares) and rewind to op 0.

        Raises ModelError when a name, shape or type does not match ``inputs``.
        """

    @abstractmethod
    def run(self, state: State, start: int, end: int) -> int:
        """Run ops ``[start, end)`` and wait; return the elapsed time on the processor in ns.

        Ranges are run in order, each once; ops that only early exits need (``exits``) may be
        left out. The range may not contain fallback ops (ValueError); those go through
        ``run_fallback``.
        """

    def run_parts(
        self, state: State, start: int, ends: Sequence[int], go_on: Callable[[int], bool]
    ) -> tuple[int, int]:
        """Run ops from ``start`` to ``ends[-1]`` in parts that end at ``ends``, or fewer of them;
        return where it stopped and the elapsed time in ns.

        ``go_on(i)`` is asked before part i >= 2 is started, as soon as part i - 2 has ended: part
        i - 1 runs meanwhile, so that the processor does not pause. An engine that does not declare
        ``ends_early`` asks nothing and runs all parts.
        """
        return ends[-1], self.run(state, start, ends[-1])

    @abstractmethod
    def run_fallback(self, state: State, start: int, end: int) -> int:
        """Run the fallback ops ``[start, end)`` on the CPU, callable from a pool thread;
        return the elapsed ns. Copies between processors are included."""

    @abstractmethod
    def read(self, state: State) -> dict[str, np.ndarray]:
        """The output tensors, in the graph's shapes; valid after the last op has run. Of a network
        with exits: those that were computed, once all ops of an exit have run."""

    def infer(self, state: State, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """A whole inference, ops that fall back to the CPU included."""
        self.write(state, inputs)
        self.run_any(state, 0, len(self.ops))
        return self.read(state)

    def run_any(self, state: State, start: int, end: int) -> int:
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

    def hand_over(self, state: State) -> dict[str, np.ndarray]:
        """The tensors that ``handovers`` names where a job has got to, in the graph's shapes."""
        raise ValueError(f"{self.graph.name} cannot be handed over by this engine")

    def take_over(
        self,
        state: State,
        op: int,
        inputs: Mapping[str, np.ndarray],
        tensors: Mapping[str, np.ndarray],
    ) -> None:
        """Go on before ``op`` with the ``inputs`` and ``tensors`` of a job from elsewhere."""
        raise ValueError(f"{self.graph.name} cannot be taken over by this engine")

    @property
    def needs(self) -> Sequence[frozenset[int]]:
        """Of each op the ops before it that it waits for; ``heimdall.graph.branches`` tells which
        may run together. An engine that cannot tell runs them in their order."""
        return [frozenset({op - 1} if op else ()) for op in range(len(self.ops))]

    def op_times(self, state: State) -> list[int] | None:
        """Device time in ns of each op since ``write``; None unless the engine ``times_ops``, and
        where it has run several ops as one: a range of one op is always timed."""
        return None

    def longest_enqueue_ns(self, state: State) -> int | None:
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

    def close(self) -> None:  # noqa: B027  (optional)
        """Free device memory."""


class Engine(ABC):
    """One processor that runs networks.

    What it can do beyond the contract is declared, and asked for here, never by its name. What
    an engine does not declare it cannot do.
    """

    name: str  # registered name: "opencl", "onnxruntime", "null"
    processor: str  # GPU or CPU: the role it plays for the coordinator
    computes: bool = False  # its outputs are the network's; else they only have the right shapes
    hardware: bool = False  # a real GPU, which no core of the CPU has to play
    cuts_at_any_op: bool = False  # a cut costs a wait; else each range must be made ready first
    cuts_where_asked: bool = False  # ``load_segments``: ops from one set of tensors to another
    ends_early: bool = False  # ``Network.run_parts`` asks before each part, and stops when told
    times_ops: bool = False  # ``Network.op_times`` tells
    saves_later: bool = False  # binaries are made by ``save_kernels`` alone
    lanes: int = 1  # how many command queues it uses at once in ``run_together``

    @abstractmethod
    def load(
        self,
        graph: Graph,
        *,
        force_fallback: Collection[str] = (),
        on_progress: LoadProgress | None = None,
    ) -> Network:
        """Compile and place a graph. ``force_fallback`` names ONNX op types or node names
        that must run as fallback ops (phones' GPU engines lack many: paper, Table 2).
        ``on_progress(done, total)`` is told while that takes long."""

    def run_together(self, stages: Sequence[Sequence[Part]]) -> int:
        """Run stages one after the other, the parts of a stage at the same time where there are
        lanes for them (TOP, section IV), and wait; return the elapsed ns.

        Parts of one stage are of several jobs, or independent branches of one (``Network.needs``).
        What all parts have of a job is one range of its ops, from where it has got to. Results are
        those of that range run by itself.

        Raises ValueError, before anything has run, for parts of a stage that need each other,
        ranges out of order, fallback ops, and networks of other engines; DeviceError where the
        device fails: what all jobs in it had computed is lost then, as before ``Network.write``.
        """
        jobs = whole_jobs(self, stages)
        return sum(job.network.run(job.state, *job.ranges[0]) for job in jobs)

    def runs(self, network: Network) -> bool:
        """Whether ``run_together`` takes a network: one that this engine has loaded."""
        return True

    @property
    def for_branches(self) -> Engine:
        """The same processor with networks whose independent branches may run together: their
        tensors share no memory there. Networks as others, where that makes no difference."""
        return self

    def load_segments(self, graph: Graph, cuts: Sequence[Collection[str]]) -> Network:
        """The same as ``len(cuts) + 1`` ops, each from one set of tensors to the next, so that it
        hands over between any two; for engines that declare ``cuts_where_asked``."""
        raise DeviceError(f"engine {self.name} cannot cut {graph.name} where it is asked to")

    def load_built(self, graph: Graph, *, force_fallback: Collection[str] = ()) -> Network | None:
        """The same where no compiler need run for it; None where one must, or it is not known
        what the device can do."""
        return self.load(graph, force_fallback=force_fallback)

    def load_beside(
        self, graph: Graph, pause: Callable[[], object], *, force_fallback: Collection[str] = ()
    ) -> Network:
        """The same for a graph that another process has compiled, while somebody else uses the
        processor: ops are tried singly, each once ``pause`` has returned."""
        return self.load(graph, force_fallback=force_fallback)

    def keeps(self, graph: Graph, *, force_fallback: Collection[str] = ()) -> bool:
        """Whether another process will find what was compiled for a graph that is loaded."""
        return True

    def save_kernels(self) -> None:  # noqa: B027  (optional)
        """Keep on disk what was left for later."""

    @property
    def complete(self) -> bool:
        """Whether it is known what the device can do, so that networks can be loaded."""
        return True

    def completed(self) -> Engine:
        """This processor once that is known: finds it out, which may take a compiler, behind
        whatever else this machine does. Raises DeviceError where it turns out to be of no use."""
        return self

    def tune(
        self, graph: Graph, on_progress: LoadProgress, *, again: bool = True
    ) -> dict[str, Tried]:
        """Measure which kernels suit a graph best here, and use them from the next load on.
        Without ``again`` only what was never measured on this machine.

        Returns what was looked at, by name. An engine without a choice looks at nothing.
        """
        return {}

    def passes(
        self, graph: Graph, *, force_fallback: Collection[str] = ()
    ) -> list[tuple[str, list[PassOp]]]:
        """What the compiler makes of a graph: the ops after each pass that changed something, by
        the pass's name, for people to read. Empty for an engine that has none."""
        return []

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """Those that ``in_precision`` takes here."""
        return (Precision.FP32,)

    def in_precision(self, precision: Precision) -> Engine:
        """The same processor with networks whose weights and activations lie in memory in that
        precision. Raises DeviceError for one that is not among ``precisions``."""
        if precision not in self.precisions:
            raise DeviceError(f"engine {self.name} has no {precision}: use precision='fp32'")
        return self

    @abstractmethod
    def describe(self) -> Mapping[str, str]:
        """What identifies it in a profile: ``device``, ``driver``, ``version``, ``mode``."""

    def beside(self) -> Engine:
        """The same processor, without waiting behind what this engine has been given."""
        return self

    def close(self) -> None:  # noqa: B027  (optional)
        """Free the device."""
