"""Profiles: what was measured, of what, and on what, as values that can be saved."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace

from heimdall.analyzer.partition import Chunk, Cut, partition
from heimdall.analyzer.profiler import Measurement
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork, State
from heimdall.graph import simplified
from heimdall.graph.cuts import Held, critical
from heimdall.graph.graph import Graph
from heimdall.vocabulary.plans import Exit, StagePlan

SCHEMA = 1
LARGEST = 1 << 62  # of a figure: 146 years in ns
_DIGESTS = {  # fields whose values say nothing to people, and what it means that they differ
    "sha256": "the network is another one",
    "version": "the code, kernels or tuning that run it have changed",
    "reading": "the code that reads models, or onnx or onnxruntime, has changed",
}


@dataclass(frozen=True)
class ProfileKey:
    """Everything that makes a profile stale when it changes."""

    sha256: str  # of the model file and its input shapes
    engine: str
    version: str  # of the engine and its kernels
    device: str
    driver: str
    mode: str  # hardware, or how and on which cores the software GPU runs
    cpu: str
    onnxruntime: str
    forced_fallback: tuple[str, ...] = ()
    reading: str = ""  # the version of what reads models: ops are of its making, too

    @classmethod
    def of(
        cls,
        graph: Graph,
        gpu: Engine,
        cpu: Engine,
        *,
        mode: str | None = None,
        force_fallback: Collection[str] = (),
    ) -> ProfileKey:
        """The key of ``graph`` on these engines; ``mode`` replaces what the GPU's engine says
        (it cannot know how the software GPU is confined)."""
        there, here = gpu.describe(), cpu.describe()
        return cls(
            sha256=graph.sha256,
            engine=gpu.name,
            version=there["version"],
            device=there["device"],
            driver=there["driver"],
            mode=", ".join(filter(None, (mode or there["mode"], there.get("precision", "")))),
            cpu=f"{here['device']}, {here['mode']}",
            onnxruntime=here["driver"],
            forced_fallback=tuple(sorted(force_fallback)),
            reading=simplified.version(),
        )

    def differences(self, other: ProfileKey) -> str:
        """What differs, in words: ``driver: was 1.0, is 2.0``."""
        values = (
            (each.name, getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)
        )
        return ", ".join(
            _DIGESTS.get(name, f"{name}: was {_plain(was)}, is {_plain(now)}")
            for name, was, now in values
            if was != now
        )


def _plain(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else " and ".join(value) or "none"


@dataclass(frozen=True)
class OpProfile:
    """One op: its share of a run of many ops on the GPU (fallback: on the CPU). ``tensors`` and
    ``state_bytes``: what is alive before it, of what those before it have made (older profiles
    have none)."""

    name: str
    kind: str
    ns: int
    fallback: bool = False
    flops: int = 0
    bytes: int = 0
    tensors: int = 0
    state_bytes: int = 0

    def __post_init__(self) -> None:
        figures = (self.ns, self.flops, self.bytes, self.tensors, self.state_bytes)
        if min(figures) < 0 or max(figures) > LARGEST:
            raise ValueError(f"a figure of op {self.name!r} is negative, or beyond all measure")


@dataclass(frozen=True)
class NetworkProfile:
    """One network on one device. See ``profiler.Measurement`` for how the figures relate.

    Raises ValueError for figures that cannot be.
    """

    model: str
    key: ProfileKey
    ops: tuple[OpProfile, ...]
    chunk_cost_ns: int
    whole_ns: int  # in as few chunks as possible on the GPU
    cpu_ns: int  # in one call on one CPU core
    write_ns: int = 0
    read_ns: int = 0
    schema_version: int = SCHEMA

    def __post_init__(self) -> None:
        figures = (self.chunk_cost_ns, self.write_ns, self.read_ns, self.whole_ns, self.cpu_ns)
        if min(figures) < 0 or max(figures) > LARGEST:
            raise ValueError(f"a figure of {self.model!r} is negative, or beyond all measure")
        if min(self.whole_ns, self.cpu_ns) < 1:
            raise ValueError(f"network {self.model!r} takes no time")

    @classmethod
    def from_measurement(
        cls, key: ProfileKey, network: LoadedNetwork[State], measured: Measurement, cpu_ns: int
    ) -> NetworkProfile:
        ops = tuple(
            OpProfile(
                name=op.name,
                kind=op.kind,
                ns=ns,
                fallback=op.fallback,
                flops=op.flops,
                bytes=op.bytes,
                tensors=state.tensors,
                state_bytes=state.bytes,
            )
            for op, ns, state in zip(network.ops, measured.op_ns, network.held(), strict=True)
        )
        return cls(
            model=network.graph.name,
            key=key,
            ops=ops,
            chunk_cost_ns=measured.chunk_cost_ns,
            whole_ns=max(measured.whole_ns, 1),
            cpu_ns=max(cpu_ns, 1),
            write_ns=measured.write_ns,
            read_ns=measured.read_ns,
        )

    @property
    def plan(self) -> StagePlan:
        """What is known of it, not cut. The pool copies input and output, not the processor."""
        return StagePlan(
            op_ns=tuple(op.ns for op in self.ops),
            fallback=tuple(op.fallback for op in self.ops),
            cpu_ns=self.cpu_ns,
            chunk_cost_ns=self.chunk_cost_ns,
            state_bytes=tuple(state.bytes for state in self.states),
            critical=critical(self.states),
        )

    @property
    def states(self) -> list[Held]:
        """What is alive before each op; nothing where an older profile does not tell."""
        found = [Held(op.tensors, op.state_bytes) for op in self.ops]
        return found if any(state.tensors for state in found) else []

    def partition(self, gap_ns: int, strategy: str = "heimdall", **options: int) -> list[Chunk]:
        """Chunks for a gap; options as in ``partition.partition``."""
        return partition(self.plan, gap_ns, strategy, **options)


def to_stage_plan(
    profile: NetworkProfile, cut: Cut, *, exits: Sequence[Exit] = (), states: Sequence[Held] = ()
) -> StagePlan:
    """What the coordinator must know of one network. ``exits``: its variants over these ops;
    ``states``: what is alive before each, if that is known better than by the profile."""
    plan = replace(profile.plan, exits=tuple(exits))
    if states:
        sizes = tuple(state.bytes for state in states)
        plan = replace(plan, state_bytes=sizes, critical=critical(states))
    return cut.apply(plan)
