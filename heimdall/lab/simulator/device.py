"""Phones as a paper describes them (``heimdall/lab/devices``), and the rules that fill the gaps.

A file gives totals (Table 2 of the Heimdall paper); what the paper gives as a distribution only
(how long single ops take, Fig. 7) is made of the totals by ``op_latencies_ns``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from statistics import NormalDist

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from heimdall.analyzer.partition import Cut
from heimdall.errors import ConfigError, unknown
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.devices import FOLDER
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.tables import Table, as_tables, read_toml
from heimdall.lab.standins import families
from heimdall.runtime.execution.deployment import plan_of
from heimdall.vocabulary.plans import StagePlan

_FULL_HD = 1920 * 1080
_NS_PER_MS = 1e6
_MOST_OPS = 100_000


class Gpu(Table):
    """The GPU of a phone."""

    name: str = Field(description="As people know it.")
    render_ms: PositiveFloat = Field(
        description="A frame at 1080p; other sizes in proportion to their pixels."
    )
    batch_ms: PositiveFloat = Field(description="The driver's turn for one queue.")
    chunk_cost_ms: NonNegativeFloat = Field(description="One wait for the GPU: a chunk's cost.")
    part_cost_ms: NonNegativeFloat | None = Field(
        default=None, description="What one more part of a chunk costs; as a wait by default."
    )
    launch_us: NonNegativeFloat = Field(default=0.0, description="To launch one kernel.")
    switch_ms: NonNegativeFloat = Field(
        default=0.0, description="To change from one queue to another."
    )
    noise: NonNegativeFloat = Field(
        default=0.0, description="Relative standard deviation of times on the GPU."
    )


class Cpu(Table):
    """The CPU of a phone."""

    name: str = Field(description="As people know it.")
    cores: PositiveInt = Field(description="Cores that networks may use.")
    core_gflops: PositiveFloat = Field(
        description="What one core sustains, for networks whose `gflop` is given."
    )
    slowdown: PositiveFloat = Field(
        description="A network on one core over the same on the GPU, for those without `gflop`."
    )
    noise: NonNegativeFloat = Field(
        default=0.0, description="Relative standard deviation of times on the CPU."
    )
    contention: NonNegativeFloat = Field(
        default=0.0, description="By how much each core at work makes the others' work longer."
    )
    handoff_ms: NonNegativeFloat = Field(default=0.0, description="One thread wakes another.")
    move_ms: NonNegativeFloat = Field(
        default=0.0, description="A network moves between GPU and CPU."
    )
    prepare_ms: NonNegativeFloat = Field(
        default=0.0, description="Preprocessing a 1080p input; smaller ones in proportion."
    )
    decode_ms: NonNegativeFloat = Field(
        default=0.0, description="Decoding the results of such an input."
    )


class PhoneNetwork(Table):
    """One network."""

    input: tuple[PositiveInt, PositiveInt] = Field(description="Width and height of its input.")
    gpu_ops: int = Field(gt=0, le=_MOST_OPS, description="Ops that the GPU runs.")
    cpu_ops: int = Field(default=0, ge=0, le=_MOST_OPS, description="Fallback ops.")
    ms: PositiveFloat = Field(description="The whole inference on the GPU, fallback ops included.")
    cpu_ops_ms: PositiveFloat | None = Field(
        default=None, description="What of it the fallback ops take; their share by default."
    )
    gflop: PositiveFloat | None = Field(default=None, description="GFLOPs of one inference.")

    @property
    def ops(self) -> int:
        return self.gpu_ops + self.cpu_ops

    @property
    def fallback_ms(self) -> float:
        """All ops that run on the CPU, together."""
        if self.cpu_ops_ms is not None:
            return self.cpu_ops_ms
        return self.ms * self.cpu_ops / self.ops


class Device(Table):
    """A device profile: one GPU, its CPU, and networks."""

    name: str = Field(description="As the file is called.")
    title: str = Field(description="One line for people.")
    gpu: Gpu = Field(description="Its GPU.")
    cpu: Cpu = Field(description="Its CPU.")
    op_spread: float = Field(
        gt=0, le=50, description="Sigma of the log-normal distribution of op latencies."
    )
    scatter: NonNegativeInt = Field(
        default=0,
        description="0 spreads a network's fallback ops evenly over it, another number at places "
        "drawn by it.",
    )
    networks: Mapping[str, PhoneNetwork] = Field(
        min_length=1, description="By the names that a scenario's `reference` has."
    )

    @cached_property
    def chunk_cost_ns(self) -> int:
        return round(self.gpu.chunk_cost_ms * _NS_PER_MS)

    @property
    def part_cost_ns(self) -> int:
        part_ms = self.gpu.part_cost_ms
        return self.chunk_cost_ns if part_ms is None else round(part_ms * _NS_PER_MS)

    def open(
        self, scenario: Scenario, render_ms: float | None = None
    ) -> tuple[Machine, list[SimulatedDnn]]:
        """This device and the scenario's DNNs on it."""
        machine = self.machine(scenario.size, render_ms)
        return machine, self.dnns(scenario, machine)

    def machine(self, size: tuple[int, int], render_ms: float | None = None) -> Machine:
        """This device, drawing pictures of ``size`` (render time grows with their pixels)."""
        gpu, cpu = self.gpu, self.cpu
        if render_ms is None:
            render_ms = gpu.render_ms * size[0] * size[1] / _FULL_HD
        return Machine(
            name=self.name,
            gpu=gpu.name,
            cpu=cpu.name,
            render_ns=round(render_ms * _NS_PER_MS),
            batch_ns=round(gpu.batch_ms * _NS_PER_MS),
            chunk_cost_ns=self.chunk_cost_ns,
            part_cost_ns=self.part_cost_ns,
            launch_ns=round(gpu.launch_us * 1e3),
            switch_ns=round(gpu.switch_ms * _NS_PER_MS),
            handoff_ns=(round(cpu.handoff_ms * _NS_PER_MS),),
            move_ns=round(cpu.move_ms * _NS_PER_MS),
            gpu_noise=gpu.noise,
            cores=cpu.cores,
            cpu_noise=cpu.noise,
            contention=cpu.contention,
            slowdown=cpu.slowdown,
        )

    def dnns(self, scenario: Scenario, machine: Machine) -> list[SimulatedDnn]:
        """The scenario's DNNs, each as the network it refers to. Raises ConfigError for a
        reference that this profile lacks."""
        gap_ns = round(1e9 / scenario.fps) - machine.render_ns
        found = []
        for dnn in scenario.declared():
            settings = scenario.settings(dnn.name)
            if settings.reference is None:
                raise ConfigError(
                    f"scenario {scenario.name!r}: DNN {dnn.name!r} has no reference, the network "
                    f"of device {self.name!r} that it stands for: {', '.join(self.networks)}"
                )
            network = self.network(settings.reference)
            share = network.input[0] * network.input[1] / _FULL_HD
            plan = plan_of(dnn, [self.stage(settings.reference, gap_ns)])
            found.append(
                SimulatedDnn(
                    plan=plan,
                    prepare_ns=((round(self.cpu.prepare_ms * share * _NS_PER_MS),),),
                    decode_ns=round(self.cpu.decode_ms * share * _NS_PER_MS),
                    event=settings.event,
                )
            )
        return found

    def stage(self, reference: str, gap_ns: int) -> StagePlan:
        """The plan of a network, cut statically for a gap."""
        network = self.network(reference)
        op_ns, fallback = op_latencies_ns(reference, network, self.op_spread, self.scatter)
        plan = StagePlan(
            op_ns=op_ns,
            fallback=fallback,
            cpu_ns=round(self.cpu_ms(network) * _NS_PER_MS),
            chunk_cost_ns=self.chunk_cost_ns,
        )
        return Cut(gap_ns).apply(plan)

    def cpu_ms(self, network: PhoneNetwork) -> float:
        """The whole network on one CPU core."""
        if network.gflop is not None:
            return 1000 * network.gflop / self.cpu.core_gflops
        return network.ms * self.cpu.slowdown

    @property
    def tells_speed(self) -> bool:
        """Whether there are networks by which others' times can be told."""
        return any(each.gflop is not None for each in self.networks.values())

    @cached_property
    def gpu_gflops(self) -> float:
        """What the GPU sustains: the mean over its networks whose ``gflop`` is given. Raises
        ConfigError where there is none."""
        if not self.tells_speed:
            raise ConfigError(
                f"device {self.name!r}: no network has gflop, to tell others' time by"
            )
        known = [(each.gflop, each.ms) for each in self.networks.values() if each.gflop is not None]
        return 1000 * math.fsum(gflop for gflop, _ in known) / math.fsum(ms for _, ms in known)

    def network(self, reference: str) -> PhoneNetwork:
        """What this profile says of a network; of one that is built here (``FAMILY:NAME``), by
        its multiply-adds: at what the GPU sustains. Raises ConfigError for one it lacks."""
        if families.is_built(reference):
            row = families.network(reference)
            gflop = 2 * row.gmac
            ms = 1000 * gflop / self.gpu_gflops
            return PhoneNetwork(input=row.input, gpu_ops=row.ops, ms=ms, gflop=gflop)
        if reference not in self.networks:
            kind = f"network of device {self.name!r}"
            raise ConfigError(unknown(kind, reference, self.networks))
        return self.networks[reference]


def op_latencies_ns(
    reference: str, network: PhoneNetwork, spread: float, scatter: int = 0
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """(latency of each op in ns, whether it falls back to the CPU).

    GPU ops are the quantiles of a log-normal distribution, scaled to the network's total and
    shuffled by its name; fallback ops are equally long, evenly spread over the network (see
    ``Device`` for ``scatter``).
    """
    bell, count = NormalDist(), network.gpu_ops
    shares = [math.exp(spread * bell.inv_cdf((i + 0.5) / count)) for i in range(count)]
    random.Random(reference).shuffle(shares)
    scale = (network.ms - network.fallback_ms) * _NS_PER_MS / sum(shares)
    gpu_ns = [round(share * scale) for share in shares]
    op_ns: list[int] = []
    fallback: list[bool] = []
    before = 0
    for place in _fallback_places(reference, network, scatter):
        op_ns += [*gpu_ns[before:place], round(network.fallback_ms / network.cpu_ops * _NS_PER_MS)]
        fallback += [False] * (place - before) + [True]
        before = place
    return tuple(op_ns + gpu_ns[before:]), tuple(fallback + [False] * (count - before))


def _fallback_places(reference: str, network: PhoneNetwork, scatter: int) -> list[int]:
    """Behind how many GPU ops each fallback op comes; no two at the same place."""
    count, runs = network.gpu_ops, network.cpu_ops + 1
    if scatter and network.cpu_ops < count:
        draw = random.Random(f"{reference} {scatter}")
        return sorted(draw.sample(range(1, count), network.cpu_ops))
    return [count * run // runs for run in range(1, runs)]


def phone_names() -> list[str]:
    """The bundled phones."""
    several = "\n[processors."  # of those in ``several``
    files = FOLDER.glob("*.toml")
    return sorted(each.stem for each in files if several not in each.read_text(encoding="utf-8"))


def load_device(name_or_path: str) -> Device:
    """A bundled phone by its name, or a profile file of one's own.

    Raises ConfigError for an unknown name, an unreadable file and impossible values.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if name_or_path not in phone_names():
            raise ConfigError(unknown("device", name_or_path, phone_names()))
        path = FOLDER / f"{name_or_path}.toml"
    return as_tables(Device, path, read_toml(path))
