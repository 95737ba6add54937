"""What the coordinator keeps of a DNN: its plan, where it runs, and what it has seen of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Protocol

from heimdall.errors import ConfigError, unknown
from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.variants import why_wrong
from heimdall.vocabulary.enums import Priority
from heimdall.vocabulary.events import DnnAdjusted
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import CPU, GPU, PROCESSORS, REMOTE

_SMOOTHING = 0.2
MAX_RETRY_NS = 1_000_000_000
MAX_FAILED_RUNS = 3  # in a row, then its processor is not for this DNN


class Window:
    """What happened to a DNN since the last placement step."""

    __slots__ = ("gpu_ns", "inferences", "latency_ns")

    def __init__(self) -> None:
        self.inferences = self.latency_ns = self.gpu_ns = 0


class InFlight(Protocol):
    """What a DNN knows of its job (a ``Job``): its number, and since when its input is ready."""

    @property
    def id(self) -> int: ...

    @property
    def enqueued_ns(self) -> int | None: ...


class Dnn:
    """A declared DNN while it runs. Where its client is a frame source, ``job`` is the one in
    flight, and ``pending`` requests wait."""

    __slots__ = (
        "adjustment",
        "constraint_ns",
        "costs",
        "failed_runs",
        "failures",
        "failures_in_row",
        "inferences",
        "job",
        "last_latency_ns",
        "last_prepare_ns",
        "last_reason",
        "misses",
        "name",
        "pending",
        "plan",
        "prepare_ns",
        "processor",
        "window",
    )

    def __init__(self, plan: DnnPlan) -> None:
        _validate(plan)
        self.plan, self.name, self.constraint_ns = plan, plan.name, plan.constraint_ns
        self.costs = tuple(StageCosts(stage) for stage in plan.stages)
        self.adjustment: DnnAdjusted | None = None
        self.processor = GPU if plan.built else CPU
        self.job: InFlight | None = None
        self.pending = 0
        self.last_prepare_ns: int | None = None
        self.prepare_ns = [0] * len(plan.stages)  # expected preprocessing time of each stage
        self.failures_in_row = self.failed_runs = self.failures = self.misses = 0
        self.inferences = Counter({GPU: 0, CPU: 0})  # by processor: of the last chunk
        self.last_latency_ns: int | None = None
        self.last_reason = ""
        self.window = Window()

    def rebuilt(self, plan: DnnPlan) -> None:
        """Its next job goes by another plan, of which nothing has been learnt. What the app has
        asked for since holds on: the plan may have been made before."""
        if self.adjustment is not None:
            plan = _adjusted(plan, self.adjustment)
        _validate(plan)
        if len(plan.stages) != len(self.costs):
            raise ConfigError(
                f"DNN {plan.name!r} has {len(self.costs)} stages, but was built with "
                f"{len(plan.stages)}"
            )
        self.plan, self.constraint_ns = plan, plan.constraint_ns
        self.costs = tuple(StageCosts(stage) for stage in plan.stages)

    def adjust(self, adjustment: DnnAdjusted) -> None:
        """Its next job is as urgent, and comes as soon, as the app wants it."""
        plan = _adjusted(self.plan, adjustment)
        _validate(plan)
        self.adjustment, self.plan, self.constraint_ns = adjustment, plan, plan.constraint_ns

    @property
    def greedy(self) -> bool:
        """Whether it takes whatever processor time it is given: continuous, without a cap."""
        return self.plan.continuous and self.plan.min_interval_ns == 0

    def expected_gpu(self) -> tuple[int, int, int]:
        """One whole inference: (GPU ns, ns off the GPU, static chunks)."""
        gpu_ns = other_ns = chunks = 0.0
        for stage, costs in enumerate(self.costs):
            tasks = costs.tasks if stage else 1.0
            task_ns, task_other_ns, task_chunks = costs.left(0)
            gpu_ns += tasks * task_ns
            other_ns += tasks * task_other_ns
            other_ns += self.prepare_ns[stage] if stage else 0
            chunks += tasks * task_chunks
        return int(gpu_ns), int(other_ns), max(1, round(chunks))

    def expected_cpu_ns(self) -> int:
        """One whole inference alone on a CPU core."""
        return self.expected_off_ns(CPU)

    def expected_off_ns(self, processor: str) -> int:
        """One whole inference alone on a processor that never cuts; 0: it is not for that one."""
        first_ns = self.costs[0].off_ns(processor)
        later = zip(self.costs[1:], self.prepare_ns[1:], strict=True)
        return first_ns + sum(int(c.tasks * c.off_ns(processor)) + ns for c, ns in later)

    @property
    def places(self) -> tuple[str, ...]:
        """The processors that it may be bound to."""
        there = all(stage.remote_ns is not None for stage in self.plan.stages)
        return (*PROCESSORS, REMOTE) if there else PROCESSORS

    def learn_prepare(self, stage: int, elapsed_ns: int) -> None:
        """Preprocessing of a stage took ``elapsed_ns``."""
        known = self.prepare_ns[stage]
        self.prepare_ns[stage] = int(known + _SMOOTHING * (elapsed_ns - known)) or elapsed_ns

    def latency_now_ns(self, now_ns: int) -> int:
        """The latency it experiences: the mean since the last step, or longer when the job in
        flight already waits longer. Zero for one that has been idle."""
        job, window = self.job, self.window
        age_ns = 0
        if job is not None and job.enqueued_ns is not None:
            age_ns = now_ns - job.enqueued_ns
        if window.inferences:
            return max(window.latency_ns // window.inferences, age_ns)
        return max(age_ns, self.last_latency_ns or 0 if self.plan.continuous else 0)

    def finished(self, latency_ns: int, processor: str, missed: bool) -> None:
        """Count an inference."""
        self.inferences[processor] += 1
        self.misses += missed
        self.last_latency_ns = latency_ns
        self.failures_in_row = self.failed_runs = 0
        self.window.inferences += 1
        self.window.latency_ns += latency_ns

    def failed(self, now_ns: int, interval_ns: int, *, ran: bool) -> int:
        """Count a failure, ``ran``: of its ops, not of the app's functions; returns when to try
        again: later and later, one second at most."""
        self.failures += 1
        self.failed_runs += ran
        self.failures_in_row += 1
        doublings = min(self.failures_in_row - 1, 10)
        return now_ns + min(interval_ns << doublings, MAX_RETRY_NS)


def _adjusted(plan: DnnPlan, adjustment: DnnAdjusted) -> DnnPlan:
    """One that is not built yet keeps its interval: most of the CPU is left to building it."""
    interval_ns = adjustment.min_interval_ns if plan.built else plan.min_interval_ns
    return replace(
        plan,
        priority=adjustment.priority,
        utility=adjustment.utility,
        constraint_ns=adjustment.constraint_ns,
        min_interval_ns=interval_ns,
        rate_hz=adjustment.rate_hz,
    )


def _validate(plan: DnnPlan) -> None:
    """Raise ConfigError for a plan that cannot be scheduled."""
    if not plan.stages:
        raise ConfigError(f"DNN {plan.name!r} has no network: give it at least one stage")
    if plan.constraint_ns <= 0:
        raise ConfigError(
            f"DNN {plan.name!r} has a latency constraint of {plan.constraint_ns} ns; "
            "it must be above zero"
        )
    if plan.min_interval_ns < 0:
        raise ConfigError(f"DNN {plan.name!r} has an interval of {plan.min_interval_ns} ns")
    if plan.priority not in Priority.values():
        raise ConfigError(f"DNN {plan.name!r}: {unknown('priority', plan.priority, Priority)}")
    for index, stage in enumerate(plan.stages):
        where = f"stage {index} of DNN {plan.name!r}"
        if not stage.op_ns:
            raise ConfigError(f"{where} has no ops; profile its network again")
        if len(stage.op_ns) != len(stage.fallback):
            raise ConfigError(
                f"{where} has {len(stage.op_ns)} op latencies but {len(stage.fallback)} "
                "fallback marks; profile its network again"
            )
        _validate_processors(stage, where)
        if why := why_wrong(stage.exits, len(stage.op_ns)):
            raise ConfigError(f"{where} cannot be used: {why}")
        if stage.state_bytes and len(stage.state_bytes) != len(stage.op_ns):
            raise ConfigError(
                f"{where} has {len(stage.op_ns)} ops, but {len(stage.state_bytes)} sizes of state"
            )
        times = (*stage.op_ns, stage.cpu_ns, stage.chunk_cost_ns, *stage.cut_ns)
        if min(times) < 0:
            raise ConfigError(f"{where} has a negative latency; profile its network again")
        ends = [0, *(end for _, end in stage.chunks)]
        starts = [*(start for start, _ in stage.chunks), len(stage.op_ns)]
        if stage.chunks and (ends != starts or any(a >= b for a, b in stage.chunks)):
            raise ConfigError(
                f"the static chunks of {where} do not cover ops 0..{len(stage.op_ns)} in order: "
                f"{list(stage.chunks)}"
            )


def _validate_processors(stage: StagePlan, where: str) -> None:
    """Raise ConfigError where a stage's table of processors cannot be used."""
    ops = len(stage.op_ns)
    if stage.cut_ns and len(stage.cut_ns) != ops:
        raise ConfigError(f"{where} has {ops} ops, but {len(stage.cut_ns)} costs of cutting")
    for processor, op_ns in stage.on:
        if len(op_ns) != ops:
            raise ConfigError(f"{where} has {ops} ops, but {len(op_ns)} latencies on {processor}")
        if any(ns is not None and ns < 0 for ns in op_ns):
            raise ConfigError(f"{where} has a negative latency on {processor}")
    for op, latencies in enumerate(zip(*(op_ns for _, op_ns in stage.on), strict=True)):
        if all(ns is None for ns in latencies):
            names = ", ".join(processor for processor, _ in stage.on)
            raise ConfigError(f"op {op} of {where} is supported by no processor ({names})")
