"""A measured machine to simulate: the file of ``heimdall measure``, on any other one.

Times of networks come from its profiles, and what surrounds them from the run of the programme
that is nearest to the scenario: the same one, else one of like size and frame rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from heimdall.analyzer.partition import Cut
from heimdall.app import DNN
from heimdall.errors import ConfigError, unknown
from heimdall.lab.bench.judge.identity import network_id
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.tables import Table
from heimdall.runtime.execution.deployment import plan_of
from heimdall.vocabulary.plans import StagePlan

_PLENTY = 64  # cores: the times that were seen include what was waited for them


class Processors(Table):
    """Of the machine that was measured. ``turn_ms``: how long its GPU stays with one queue."""

    gpu: str
    cpu: str
    software_gpu: bool
    turn_ms: NonNegativeFloat
    load_limit: float = Field(gt=0, le=1)
    handoff_us: tuple[NonNegativeFloat, ...]


class MeasuredStage(Table):
    """One network, alone: the times of its ops on the GPU (``fallback_ops``: their places, on the
    CPU), of the whole on a core, and of what comes before it."""

    cpu_us: PositiveFloat
    chunk_cost_us: NonNegativeFloat
    prepare_us: tuple[NonNegativeFloat, ...] = Field(min_length=1)
    tasks: NonNegativeInt
    fallback_ops: tuple[NonNegativeInt, ...]
    op_us: tuple[NonNegativeFloat, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_these_ops(self) -> MeasuredStage:
        if any(op >= len(self.op_us) for op in self.fallback_ops):
            raise ValueError("fallback_ops has an op that op_us has not")
        return self


class MeasuredNetwork(Table):
    """A DNN's networks by what they are called in such files (``identity.network_id``)."""

    network: str
    decode_us: NonNegativeFloat
    stages: tuple[MeasuredStage, ...] = Field(min_length=1)


class Around(Table):
    """What surrounded one DNN of a run; lists are drawn from at random."""

    network: str
    gpu_slowdown: PositiveFloat
    gpu_delay_us: tuple[float, ...] = Field(min_length=1)
    cpu_slowdown: tuple[PositiveFloat, ...] = Field(min_length=1)
    prepare_us: tuple[tuple[NonNegativeFloat, ...], ...]
    tasks: tuple[tuple[NonNegativeInt, ...], ...]
    decode_us: tuple[NonNegativeFloat, ...]
    luminance_difference: tuple[float, ...] = Field(min_length=1)


class MeasuredRun(Table):
    """A run of the programme."""

    scenario: str
    fps: PositiveFloat
    size: tuple[PositiveInt, PositiveInt]
    render_us: tuple[PositiveFloat, ...] = Field(min_length=1)
    guard_us: NonNegativeFloat
    handoff_us: tuple[NonNegativeFloat, ...] = Field(min_length=1)
    move_us: NonNegativeFloat
    dnns: tuple[Around, ...]

    @property
    def pixels(self) -> int:
        return self.size[0] * self.size[1]

    @property
    def render_ns(self) -> int:
        """The median."""
        return _ns(self.render_us[len(self.render_us) // 2])


class Profile(Table):
    """What the simulator needs of a machine."""

    processors: Processors
    networks: tuple[MeasuredNetwork, ...] = Field(min_length=1)
    runs: tuple[MeasuredRun, ...] = Field(min_length=1)


class MeasuredDevice(Table):
    """A file of ``heimdall measure``; what stands in its row is not checked here."""

    name: str
    title: str
    note: str = ""
    schema_: Literal[1] = Field(alias="schema")
    machine: Mapping[str, Any]
    engine: Mapping[str, Any]
    chunks: Mapping[str, Any]
    preemption: Mapping[str, Any]
    scenarios: Mapping[str, Any]
    energy: Mapping[str, Any]
    profile: Profile

    def open(
        self, scenario: Scenario, render_ms: float | None = None
    ) -> tuple[Machine, list[SimulatedDnn]]:
        """The machine, and the scenario's DNNs on it. Raises ConfigError for a DNN whose network
        was not measured there."""
        runs = sorted(self.profile.runs, key=lambda run: _distance(run, scenario))
        machine = self._machine(runs[0], scenario, render_ms)
        gap_ns = round(1e9 / scenario.fps) - machine.render_ns
        networks = {each.network: each for each in self.profile.networks}
        found = []
        for dnn in scenario.declared():
            settings = scenario.settings(dnn.name)
            key = network_id(dnn, settings.alone_ms)
            if key not in networks:
                kind = f"network of device {self.name!r} (of DNN {dnn.name!r})"
                raise ConfigError(unknown(kind, key, networks))
            around = next((dnn for run in runs for dnn in run.dnns if dnn.network == key), None)
            found.append(_dnn(dnn, networks[key], around, settings.event, gap_ns))
        return machine, found

    def _machine(self, run: MeasuredRun, scenario: Scenario, render_ms: float | None) -> Machine:
        processors = self.profile.processors
        if render_ms is None:
            scale = self._render_ns(scenario) / run.render_ns
            renders_ns = tuple(round(_ns(each) * scale) for each in run.render_us)
        else:
            renders_ns = (round(render_ms * 1e6),)
        costs = [stage.chunk_cost_us for each in self.profile.networks for stage in each.stages]
        return Machine(
            name=self.name,
            gpu=processors.gpu,
            cpu=processors.cpu,
            render_ns=renders_ns[len(renders_ns) // 2],
            renders_ns=renders_ns,
            batch_ns=round(processors.turn_ms * 1e6),
            chunk_cost_ns=_ns(sorted(costs)[len(costs) // 2]),
            handoff_ns=tuple(map(_ns, run.handoff_us)),
            move_ns=_ns(run.move_us),
            cores=_PLENTY,
            pool_threads=_PLENTY,
            guard_ns=_ns(run.guard_us),
            load_limit=processors.load_limit,
            software_gpu=processors.software_gpu,
        )

    def _render_ns(self, scenario: Scenario) -> float:
        """What a frame of the scenario's size takes, by the nearest runs of two sizes: a part is
        the same at every size, the rest grows with the pixels."""
        pixels = scenario.size[0] * scenario.size[1]
        runs = sorted(self.profile.runs, key=lambda run: _distance(run, scenario))
        near = runs[0]
        if near.pixels == pixels:
            return near.render_ns
        alike = (run for run in runs if run.scenario == near.scenario and run.fps == near.fps)
        other = next((run for run in alike if run.pixels != near.pixels), None)
        if other is None:
            return near.render_ns * pixels / near.pixels
        slope = (other.render_ns - near.render_ns) / (other.pixels - near.pixels)
        return max(near.render_ns + slope * (pixels - near.pixels), 1.0)


def _distance(run: MeasuredRun, scenario: Scenario) -> tuple[bool, float, float]:
    pixels = scenario.size[0] * scenario.size[1]
    return (
        run.scenario != scenario.name,
        abs(math.log(run.pixels / pixels)),
        abs(math.log(run.fps / scenario.fps)),
    )


def _dnn(
    dnn: DNN[Any], network: MeasuredNetwork, around: Around | None, event: Any, gap_ns: int
) -> SimulatedDnn:
    """The DNN with what surrounded it in a run, else as it was measured alone."""
    plan = plan_of(dnn, [_stage(stage, gap_ns) for stage in network.stages])
    alone_ns = [tuple(map(_ns, stage.prepare_us)) for stage in network.stages]
    if around is None:
        return SimulatedDnn(
            plan=plan,
            prepare_ns=tuple(alone_ns),
            decode_ns=_ns(network.decode_us),
            event=event,
            tasks=tuple((stage.tasks,) for stage in network.stages),
        )
    seen_ns = [tuple(map(_ns, each)) for each in around.prepare_us]
    decodes = around.decode_us or (network.decode_us,)
    return SimulatedDnn(
        plan=plan,
        prepare_ns=tuple(seen or alone for seen, alone in zip(seen_ns, alone_ns, strict=True)),
        decode_ns=_ns(decodes[len(decodes) // 2]),
        event=event,
        tasks=tuple(seen or (1,) for seen in around.tasks),
        luminance_difference=around.luminance_difference,
        gpu_slowdown=around.gpu_slowdown,
        gpu_delay_ns=tuple(map(_ns, around.gpu_delay_us)),
        cpu_slowdown=around.cpu_slowdown,
    )


def _stage(stage: MeasuredStage, gap_ns: int) -> StagePlan:
    fallback = frozenset(stage.fallback_ops)
    plan = StagePlan(
        op_ns=tuple(map(_ns, stage.op_us)),
        fallback=tuple(op in fallback for op in range(len(stage.op_us))),
        cpu_ns=_ns(stage.cpu_us),
        chunk_cost_ns=_ns(stage.chunk_cost_us),
    )
    return Cut(gap_ns).apply(plan)


def _ns(us: float) -> int:
    return round(us * 1e3)
