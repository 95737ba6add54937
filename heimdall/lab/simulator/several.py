"""Devices with several processors, for requests: files with [processors.ID].

[processors.npu]
name = "Edge TPU"
kind = "npu"
noise = 0.05

[networks.RetinaFace]
ops = 135
ms = { gpu = 41, npu = 12 }           # the whole network there, as if all its ops were supported
unsupported = { npu = [[10, 14]] }    # ops that are not
cut_ms = 1.2                          # to begin at an op with tensors from elsewhere
cuts = [{ at = 0.5, ms = 0.8 }]       # ... but there (see ``cutting``)
accuracy = 0.87                       # with smaller variants: see ``early_exits``
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from statistics import NormalDist, fmean

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from heimdall.analyzer.partition import Cut
from heimdall.errors import ConfigError, unknown
from heimdall.lab.devices import FOLDER
from heimdall.lab.simulator.cutting import CutTable, check_cuts, placed, prices_ms
from heimdall.lab.simulator.device import phone_names
from heimdall.lab.simulator.early_exits import (
    ExitTable,
    Heads,
    ScaledTable,
    check_exits,
    check_scaled,
)
from heimdall.lab.simulator.silent import falling_back
from heimdall.lab.simulator.tables import Table, as_tables, read_toml
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.enums import ProcessorKind, Silent
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU, PROCESSORS, Processor, check

_NS_PER_MS = 1e6
_NEVER_NS = 3_600_000_000_000  # on a processor that does not support all of it


class ProcessorTable(Table):
    """One processor."""

    name: str = Field(description="As people know it.")
    kind: str = Field(
        default=ProcessorKind.CPU,
        description=f"One of {', '.join(f'`{each}`' for each in ProcessorKind.values())}.",
    )
    lanes: PositiveInt = Field(default=1, description="How many chunks it runs at once.")
    noise: NonNegativeFloat = Field(
        default=0.0, description="Relative standard deviation of what runs there."
    )
    chunk_cost_ms: NonNegativeFloat = Field(default=0.0, description="What each chunk costs.")
    batch_ms: PositiveFloat | None = Field(
        default=None,
        description="Of a GPU, the driver's turn for one queue, for systems without a coordinator.",
    )


class NetworkTable(Table):
    """One network."""

    ops: PositiveInt = Field(description="How many ops it has.")
    ms: Mapping[str, PositiveFloat] = Field(
        min_length=1,
        description="By processor: the whole network there, as if all its ops were supported.",
    )
    unsupported: Mapping[str, tuple[tuple[int, int], ...]] = Field(
        default_factory=dict,
        description="By processor: ranges `[first, end]` of ops that it does not support.",
    )
    cut_ms: NonNegativeFloat | tuple[NonNegativeFloat, ...] = Field(
        default=0.0,
        description="What it costs to begin at an op with tensors from elsewhere; one for all, or "
        "a list.",
    )
    cuts: tuple[CutTable, ...] = Field(default=(), description="Places with a price of their own.")
    accuracy: float | None = Field(
        default=None, ge=0, le=1, description="How often the whole network is right."
    )
    slices: PositiveInt | None = Field(
        default=None, description="Where exits may be: so many slices, evenly."
    )
    exits: tuple[ExitTable, ...] = Field(default=(), description="Early exits, the first first.")
    scaled: tuple[ScaledTable, ...] = Field(
        default=(), description="Smaller networks for the same task, the fastest first."
    )

    @model_validator(mode="after")
    def _fits(self) -> NetworkTable:
        for processor, ranges in self.unsupported.items():
            if not all(0 <= start < end <= self.ops for start, end in ranges):
                raise ValueError(f"unsupported.{processor}: ranges of 0 to {self.ops} ops")
        if isinstance(self.cut_ms, tuple) and len(self.cut_ms) != self.ops:
            raise ValueError(f"cut_ms: a cost for each of the {self.ops} ops, or one for all")
        check_cuts(self.cuts, self.ops)
        check_exits(self.exits, self.accuracy, min(self.slices or self.ops, self.ops))
        check_scaled(self.scaled, self.accuracy, self.ops)
        for op in range(self.ops):
            if not any(self.supports(processor, op) for processor in self.ms):
                raise ValueError(f"op {op} is supported by no processor")
        return self

    def supports(self, processor: str, op: int) -> bool:
        """True if ``processor`` runs ``op``."""
        ranges = self.unsupported.get(processor, ())
        return processor in self.ms and not any(start <= op < end for start, end in ranges)


class SeveralDevice(Table):
    """A device profile: its processors in their order, and networks."""

    name: str = Field(description="As the file is called.")
    title: str = Field(description="One line for people.")
    op_spread: PositiveFloat = Field(
        default=0.5, description="Sigma of the log-normal distribution of op latencies."
    )
    processors: Mapping[str, ProcessorTable] = Field(
        min_length=1, description="Its processors by id, in their order."
    )
    networks: Mapping[str, NetworkTable] = Field(
        min_length=1, description="By the names that a scenario's `reference` has."
    )

    @model_validator(mode="after")
    def _processors_are_known(self) -> SeveralDevice:
        for name, network in self.networks.items():
            for processor in (*network.ms, *network.unsupported):
                if processor not in self.processors:
                    kind = f"processor of networks.{name}"
                    raise ValueError(unknown(kind, processor, self.processors))
        return self

    def list(self) -> tuple[Processor, ...]:
        """Its processors."""
        found = [Processor(id, each.kind, lanes=each.lanes) for id, each in self.processors.items()]
        check(found)
        return tuple(found)

    def alone(self) -> tuple[Processor, ...]:
        """Its processors, for systems that run one range on each lane of a processor."""
        return self.list()

    def noise(self) -> dict[str, float]:
        """By processor, how much times there vary."""
        return {id: each.noise for id, each in self.processors.items()}

    def stage(
        self, reference: str, strategy: str, silent: str = Silent.NEVER, *, variants: str = ""
    ) -> StagePlan:
        """The plan of a network, cut by a strategy; ``silent``: what follows an op that a processor
        lacks; ``variants``: of that kind (``early_exits``). Raises ConfigError for one it lacks."""
        on, network = self._latencies(reference), self.networks[reference]
        shares = _shares(reference, network.ops, self.op_spread)
        prices = prices_ms(shares, network.cuts, network.cut_ms)
        heads = Heads(
            variants, network.exits, network.scaled, network.accuracy, shares, network.slices
        )
        for id, latencies in on.items():
            own = [max(1, round(each * network.ms[id] * _NS_PER_MS)) for each in heads.shares]
            on[id] = tuple(heads.inserted(latencies, own))
        prices = heads.inserted(prices, [0.0] * len(heads.shares))
        op_ns = tuple(min(filter(None, each)) for each in zip(*on.values(), strict=True))
        cut_ns = tuple(round(each * _NS_PER_MS) for each in prices)
        plan = StagePlan(
            op_ns=op_ns,
            fallback=(False,) * len(op_ns),
            cpu_ns=sum(op_ns),
            chunk_cost_ns=self._chunk_cost_ns(),
            chunks=(),
            on=falling_back(tuple(on.items()), self._host, cut_ns, silent),
            cut_ns=cut_ns,
            exits=heads.variants,
            critical=heads.critical,
        )
        return recut(plan, strategy, self.short_ns)

    @cached_property
    def short_ns(self) -> int:
        """How long a short network takes at most, beside the others: their mean. That of Table 1 of
        SPLIT's paper lies just between those that it calls short and long."""
        fastest = [min(network.ms.values()) for network in self.networks.values()]
        return round(fmean(fastest) * _NS_PER_MS)

    def two(self) -> tuple[Processor, ...]:
        """The processors that policies use which know one GPU and CPU cores. Raises ConfigError
        where there are none."""
        found = tuple(each for each in self.alone() if each.id in PROCESSORS)
        if not any(each.id == GPU for each in found):
            raise ConfigError(
                f"device {self.name!r} has no processor {GPU!r}, nothing else is used"
            )
        return found

    def stage_of_two(self, reference: str) -> StagePlan:
        """The plan of a network for such policies: what the GPU does not support are fallback ops.
        Raises ConfigError where the CPU does not support them either."""
        on = self._latencies(reference)
        ops = self.networks[reference].ops
        gpu, cpu = (on.get(each, (None,) * ops) for each in (GPU, CPU))
        op_ns = [here if here is not None else there for here, there in zip(gpu, cpu, strict=True)]
        if None in op_ns:
            raise ConfigError(
                f"device {self.name!r}: op {op_ns.index(None)} of {reference!r} is supported by "
                f"neither {GPU!r} nor {CPU!r}"
            )
        whole_ns = tuple(ns for ns in op_ns if ns is not None)
        on_cpu = all(ns is not None for ns in cpu)
        return StagePlan(
            op_ns=whole_ns,
            fallback=tuple(ns is None for ns in gpu),
            cpu_ns=sum(filter(None, cpu)) if on_cpu else _NEVER_NS,
            chunk_cost_ns=self._chunk_cost_ns(),
            chunks=((0, ops),),
        )

    @property
    def _host(self) -> str:
        """The CPU that runs what others fall back for, if there is one."""
        return next(
            (id for id, each in self.processors.items() if each.kind == ProcessorKind.CPU), ""
        )

    def _chunk_cost_ns(self) -> int:
        return round(max(each.chunk_cost_ms for each in self.processors.values()) * _NS_PER_MS)

    def _latencies(self, reference: str) -> dict[str, tuple[int | None, ...]]:
        """By processor those of each op in ns; None for one that it does not support."""
        if reference not in self.networks:
            raise ConfigError(unknown(f"network of device {self.name!r}", reference, self.networks))
        network = self.networks[reference]
        shares = placed(_shares(reference, network.ops, self.op_spread), network.cuts)
        return {
            id: tuple(
                max(1, round(share * network.ms[id] * _NS_PER_MS))
                if network.supports(id, op)
                else None
                for op, share in enumerate(shares)
            )
            for id in self.processors
            if id in network.ms
        }


def recut(plan: StagePlan, strategy: str, short_ns: int = 1) -> StagePlan:
    """This plan, cut by another strategy; some leave networks whole that take ``short_ns``."""
    return Cut(short_ns, strategy).apply(plan)


def alone_ns(plan: StagePlan) -> int:
    """What the network takes with nothing else there: on the best processor, or on several, one
    after the other, where the processors that support an op change."""
    costs, edges = StageCosts(plan), [0, *_changes(plan), len(plan.op_ns)]
    best = {0: 0}
    for end in edges[1:]:
        best[end] = min(
            best[start] + ns
            for start in edges[: edges.index(end)]
            for processor, _ in plan.on
            if (ns := costs.on_ns(processor, start, end)) is not None
        )
    return best[edges[-1]]


def _changes(plan: StagePlan) -> list[int]:
    """The ops at which other processors support the network than at the one before."""
    latencies = zip(*(op_ns for _, op_ns in plan.on), strict=True)
    supports = [tuple(ns is not None for ns in each) for each in latencies]
    return [op for op in range(1, len(supports)) if supports[op] != supports[op - 1]]


def _shares(reference: str, ops: int, spread: float) -> list[float]:
    """Each op's share of a network's time: quantiles of a log-normal distribution, shuffled by the
    network's name."""
    bell = NormalDist()
    weights = [math.exp(spread * bell.inv_cdf((op + 0.5) / ops)) for op in range(ops)]
    random.Random(reference).shuffle(weights)
    return [weight / sum(weights) for weight in weights]


def several_names() -> list[str]:
    """The bundled devices with several processors."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if _is_several(path))


def several_path(name_or_path: str) -> Path:
    """The file of a bundled device, or one's own. Raises ConfigError for an unknown name."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if name_or_path not in several_names():
            names = [*several_names(), *phone_names()]
            raise ConfigError(unknown("device for requests", name_or_path, names))
        path = FOLDER / f"{name_or_path}.toml"
    return path


def load_several(name_or_path: str) -> SeveralDevice:
    """A bundled device by its name, or a file of one's own. Raises ConfigError for an unknown
    name, an unreadable file and impossible values."""
    path = several_path(name_or_path)
    return as_tables(SeveralDevice, path, read_toml(path))


def _is_several(path: Path) -> bool:
    return "\n[processors." in path.read_text(encoding="utf-8")
