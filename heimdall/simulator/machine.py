"""What a simulation runs on: processors and DNNs as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from heimdall.bench.scenario import EventProcess
from heimdall.coordinator.events import DnnPlan
from heimdall.pacing import GAP_GUARD_NS


@dataclass(frozen=True)
class Machine:
    """Times in ns. ``batch_ns``: how long the GPU's driver stays with one queue while others
    wait. ``chunk_cost_ns``: one wait for the GPU. ``handoff_ns``: from one thread to another.
    ``gpu_noise``, ``cpu_noise``: relative standard deviations. ``guard_ns``: the gap closes that
    much before the next frame.
    """

    name: str
    gpu: str
    cpu: str
    render_ns: int
    batch_ns: int
    chunk_cost_ns: int
    launch_ns: int = 0
    switch_ns: int = 0
    handoff_ns: int = 0
    move_ns: int = 0
    gpu_noise: float = 0.0
    cores: int = 2
    pool_threads: int = 2
    cpu_noise: float = 0.0
    contention: float = 0.0
    guard_ns: int = GAP_GUARD_NS
    software_gpu: bool = False


@dataclass(frozen=True)
class SimulatedDnn:
    """One DNN: its plan, and what the plan does not say.

    ``prepare_ns``: preprocessing of each stage; ``decode_ns``: postprocessing; ``tasks``: for
    each stage the numbers of inputs seen (hands, faces), drawn from at random.
    """

    plan: DnnPlan
    prepare_ns: tuple[int, ...]
    decode_ns: int
    event: EventProcess | None = None
    tasks: tuple[tuple[int, ...], ...] = field(default=())

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def fallback_ops(self) -> int:
        return sum(sum(stage.fallback) for stage in self.plan.stages)

    @property
    def whole_ns(self) -> int:
        """All stages alone on the GPU, once each, as profiled."""
        return sum(sum(stage.op_ns) for stage in self.plan.stages)

    def numbers_of_tasks(self, stage: int) -> tuple[int, ...]:
        """How many inputs ``stage`` may get."""
        return self.tasks[stage] if stage < len(self.tasks) else (self.plan.stages[stage].tasks,)
