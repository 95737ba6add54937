"""The small contract every engine meets: load a graph, then run ranges of its ops (``network``)."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from heimdall.engine.network import LoadedNetwork
from heimdall.engine.together import GroupMember, whole_jobs
from heimdall.errors import DeviceError
from heimdall.graph.graph import Graph
from heimdall.vocabulary.driver_priority import NOT_ASKED, DriverPriority
from heimdall.vocabulary.enums import Precision

LoadProgress = Callable[[int, int], None]  # steps done, steps in all


@dataclass(frozen=True)
class PassOp:
    """An op between two passes of an engine's compiler: not yet what is scheduled."""

    kind: str
    output: str
    shape: tuple[int, ...]
    nodes: tuple[str, ...]


class Tried(NamedTuple):
    """What came of trying kernels for one kind of layer: its time before and now, and how many of
    them gave wrong results or did not run, which are never chosen. Times are 0 if all are."""

    before_ns: int
    after_ns: int
    wrong: int = 0


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
    units: int = 0  # cores that compute, of one that the CPU plays, as its driver counts them
    lanes: int = 1  # how many command queues it uses at once in ``run_together``
    driver_priority: DriverPriority = NOT_ASKED  # of its queues, among all that use the device

    @abstractmethod
    def load(
        self,
        graph: Graph,
        *,
        force_fallback: Collection[str] = (),
        on_progress: LoadProgress | None = None,
    ) -> LoadedNetwork[Any]:
        """Compile and place a graph. ``force_fallback`` names ONNX op types or node names
        that must run as fallback ops (phones' GPU engines lack many: paper, Table 2).
        ``on_progress(done, total)`` is told while that takes long."""

    def run_together(self, stages: Sequence[Sequence[GroupMember]]) -> int:
        """Run stages one after the other, the parts of a stage at the same time where there are
        lanes for them (TOP, section IV), and wait; return the elapsed ns.

        Members of one stage are of several jobs, or independent branches of one
        (``LoadedNetwork.needs``). What all of them have of a job is one range of its ops, from
        where it has got to. Results are those of that range run by itself.

        Raises ValueError, before anything has run, for parts of a stage that need each other,
        ranges out of order, fallback ops, and networks of other engines; DeviceError where the
        device fails: what all jobs in it had computed is lost then, as before
        ``LoadedNetwork.write``.
        """
        jobs = whole_jobs(self.runs, stages)
        return sum(job.network.run(job.state, *job.ranges[0]) for job in jobs)

    def runs(self, network: LoadedNetwork[Any]) -> bool:
        """True if ``run_together`` takes a network: one that this engine has loaded."""
        return True

    @property
    def for_branches(self) -> Engine:
        """This processor with networks whose independent branches may run together: their
        tensors share no memory there. Networks as others, where that makes no difference."""
        return self

    def load_segments(self, graph: Graph, cuts: Sequence[Collection[str]]) -> LoadedNetwork[Any]:
        """Load a graph as ``len(cuts) + 1`` ops, each from one set of tensors to the next, so that
        it hands over between any two; for engines that declare ``cuts_where_asked``."""
        raise DeviceError(f"engine {self.name} cannot cut {graph.name} where it is asked to")

    def load_built(
        self, graph: Graph, *, force_fallback: Collection[str] = ()
    ) -> LoadedNetwork[Any] | None:
        """Load a graph if no compiler need run for it; None where one must, or it is not known
        what the device can do."""
        return self.load(graph, force_fallback=force_fallback)

    def load_beside(
        self, graph: Graph, pause: Callable[[], object], *, force_fallback: Collection[str] = ()
    ) -> LoadedNetwork[Any]:
        """Load a graph that another process has compiled, while other work uses the
        processor: ops are tried singly, each once ``pause`` has returned."""
        return self.load(graph, force_fallback=force_fallback)

    def keeps(self, graph: Graph, *, force_fallback: Collection[str] = ()) -> bool:
        """True if another process will find what was compiled for a loaded graph."""
        return True

    def save_kernels(self) -> None:  # noqa: B027  (optional)
        """Keep on disk what was left for later."""

    @property
    def choices(self) -> Mapping[str, Mapping[str, Any]]:
        """What was chosen by measurement on this machine when this engine was opened, as JSON can
        hold it: with the same ``choices`` and ``units`` another process makes the same ops."""
        return {}

    @property
    def complete(self) -> bool:
        """True if the device's abilities are known, so that networks can be loaded."""
        return True

    def completed(self, stop: threading.Event | None = None) -> Engine:
        """This processor once that is known: finds it out, which may take a compiler, behind
        whatever else this machine does. Raises DeviceError where it turns out to be of no use, and
        when ``stop`` is set meanwhile."""
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
        """The precisions that ``in_precision`` takes here."""
        return (Precision.FP32,)

    def in_precision(self, precision: Precision) -> Engine:
        """This processor with networks whose weights and activations lie in memory in that
        precision. Raises DeviceError for one that is not among ``precisions``."""
        if precision not in self.precisions:
            raise DeviceError(f"engine {self.name} has no {precision}: use precision='fp32'")
        return self

    @abstractmethod
    def describe(self) -> Mapping[str, str]:
        """What identifies the engine in a profile: ``device``, ``driver``, ``version``,
        ``mode``."""

    def beside(self) -> Engine:
        """This processor, without waiting behind what this engine has been given."""
        return self

    def close(self) -> None:  # noqa: B027  (optional)
        """Free the device."""
