"""What a simulation runs on: processors and DNNs as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from heimdall.runtime.loop.pacing import GAP_GUARD_NS
from heimdall.vocabulary.plans import DnnPlan


@dataclass(frozen=True)
class Machine:
    """Times in ns. ``render_ns``: a frame, as usual; ``renders_ns``: each takes one of these, where
    they are known. ``batch_ns``: how long the GPU's driver stays with one queue while others wait
    (0: not known). ``chunk_cost_ns``: one wait for the GPU. ``handoff_ns``: from one thread to
    another, each time one of these. ``gpu_noise``, ``cpu_noise``: relative standard deviations;
    ``render_noise``: that of a frame's rendering, beside the GPU's. ``part_cost_ns``: one part of
    a chunk. ``cpu_workers``: how many DNNs the CPU runs at once (see ``Coordinator``).
    ``slowdown``: a network on a core over the same on the GPU (0: known of each network alone).
    ``throttle``: after so many seconds the GPU takes so many times as long.
    ``guard_ns``: the gap closes at least that much before the next frame; ``load_limit``: the share
    of its time that the GPU may work (see ``pacing.Reserve``).
    """

    name: str
    gpu: str
    cpu: str
    render_ns: int
    batch_ns: int
    chunk_cost_ns: int
    renders_ns: tuple[int, ...] = ()
    launch_ns: int = 0
    switch_ns: int = 0
    handoff_ns: tuple[int, ...] = (0,)
    move_ns: int = 0
    gpu_noise: float = 0.0
    cores: int = 2
    pool_threads: int = 2
    cpu_noise: float = 0.0
    render_noise: float = 0.0
    part_cost_ns: int = 0
    cpu_workers: int = 1
    slowdown: float = 0.0
    throttle: tuple[float, float] | None = None
    contention: float = 0.0
    guard_ns: int = GAP_GUARD_NS
    load_limit: float = 1.0
    software_gpu: bool = False


class Events(Protocol):
    """When an event-driven DNN is asked for (a scenario's ``EventProcess``)."""

    def waits_s(self, seed: int) -> Iterator[float]:
        """Seconds from each event to the next."""


class Watched(Protocol):
    """What a DNN looks at."""

    def difference(self, before_ns: int | None, now_ns: int) -> float:
        """C of Eq. 4 between two times (None: it has not looked yet)."""


@dataclass(frozen=True)
class SimulatedDnn:
    """One DNN: its plan, and what the plan does not say.

    All that is a tuple is drawn from at random: for each stage ``prepare_ns``, how long
    preprocessing takes, and ``tasks``, the numbers of inputs (hands, faces); then
    ``luminance_difference`` of Eq. 4, ``gpu_delay_ns``, what is added to each chunk, and
    ``cpu_slowdown``. The slowdowns: how much longer than profiled its work takes. ``decode_ns``:
    postprocessing. ``watched``: where the luminance differences come from, if it is known.
    """

    plan: DnnPlan
    prepare_ns: tuple[tuple[int, ...], ...]
    decode_ns: int
    event: Events | None = None
    tasks: tuple[tuple[int, ...], ...] = field(default=())
    luminance_difference: tuple[float, ...] = (0.0,)
    watched: Watched | None = None
    gpu_slowdown: float = 1.0
    gpu_delay_ns: tuple[int, ...] = (0,)
    cpu_slowdown: tuple[float, ...] = (1.0,)

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def fallback_ops(self) -> int:
        return sum(sum(stage.fallback) for stage in self.plan.stages)

    @property
    def whole_ns(self) -> int:
        """All stages alone on the GPU, once each, as profiled; without fallback ops."""
        return self.plan.gpu_ns

    def numbers_of_tasks(self, stage: int) -> tuple[int, ...]:
        """How many inputs ``stage`` may get."""
        return self.tasks[stage] if stage < len(self.tasks) else (self.plan.stages[stage].tasks,)
