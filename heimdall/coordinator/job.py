"""A DNN and its jobs: what the coordinator keeps of either, and the value of a job that policies
see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heimdall.coordinator.states import PREPARING, TABLE, State, illegal
from heimdall.errors import ConfigError, unknown
from heimdall.schedulers.base import JobView
from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.variants import why_wrong
from heimdall.vocabulary.enums import Priority
from heimdall.vocabulary.events import DnnAdjusted
from heimdall.vocabulary.plans import DnnPlan, StagePlan, Utility
from heimdall.vocabulary.processors import CPU, GPU, PROCESSORS, REMOTE

_SMOOTHING = 0.2
MAX_RETRY_NS = 1_000_000_000
MAX_FAILED_RUNS = 3  # in a row, then its processor is not for this DNN
_made = tuple.__new__  # a JobView at each end of a chunk: half as long as by its constructor


class Window:
    """What happened to a DNN since the last placement step."""

    __slots__ = ("gpu_ns", "inferences", "latency_ns")

    def __init__(self) -> None:
        self.inferences = self.latency_ns = self.gpu_ns = 0


class Dnn:
    """A declared DNN while it runs. Where its client is a frame source, ``job`` is the one in
    flight, and ``pending`` requests wait."""

    def __init__(self, plan: DnnPlan) -> None:
        _validate(plan)
        self.plan, self.name, self.constraint_ns = plan, plan.name, plan.constraint_ns
        self.costs = tuple(StageCosts(stage) for stage in plan.stages)
        self.adjustment: DnnAdjusted | None = None
        self.processor = GPU if plan.built else CPU
        self.job: Job | None = None
        self.pending = 0
        self.last_prepare_ns: int | None = None
        self.prepare_ns = [0] * len(plan.stages)  # expected preprocessing time of each stage
        self.failures_in_row = self.failed_runs = self.failures = self.misses = 0
        self.inferences = Counter({GPU: 0, CPU: 0})  # by processor: of the last chunk
        self.last_latency_ns: int | None = None
        self.last_reason = ""
        self.times = 0.0  # how many times as long as profiled its chunks take; 0: not known yet
        self.slow_chunks = 0  # in a row, far more
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
        self.times, self.slow_chunks = 0.0, 0
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


@dataclass(slots=True, eq=False)
class Chunk:
    """What of a job is on a processor. Expected to run from ``begin_ns`` to ``end_ns``; ``early``:
    it may end before ``end_op``; ``yields``: it has been asked to; ``together``: it is a part of
    RunTogether."""

    end_op: int
    begin_ns: int
    end_ns: int
    early: bool = False
    together: bool = False
    yields: bool = False


NO_CHUNK = Chunk(0, 0, 0)


class Away(NamedTuple):
    """A job's fallback ops are in the pool: since when, and until when that is expected to be."""

    since_ns: int
    until_ns: int


NOT_AWAY = Away(0, 0)
NOT_SEEN = JobView(-1, "", "", Utility(), 0, (), 0)  # before its first input is ready


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """See ``JobView`` for what both have. Only ``happened`` sets ``state``.

    ``bound``: the processor it has to run on, "" where each range chooses anew. ``seen``: what
    policies see, made anew whenever the job has become ready.
    """

    id: int
    dnn: str
    priority: str
    utility: Utility
    constraint_ns: int
    owner: Dnn
    stage_costs: StageCosts  # of the current stage
    arrival_ns: int
    state: State = PREPARING
    processor: str = GPU
    bound: str = GPU
    enqueued_ns: int | None = None  # its first input is ready: latency and utility count from then
    deadline_ns: int = 0
    stage: int = 0
    task: int = 0
    tasks: int = 1
    next_op: int = 0
    passed_op: int = 0
    executed_ns: int = 0
    remaining_ns: int = 0
    other_ns: int = 0
    gaps: int = 1
    beta: float = 1.0
    bonus: float = 0.0
    variant: str = ""
    variants: tuple[str, ...] = ()
    request: int | None = None
    prepare_ns: int = 0  # when preprocessing of the current stage was asked for
    chunk: Chunk = NO_CHUNK  # the last one that was started
    away: Away = NOT_AWAY
    chunk_end_op: int = 0  # of a chunk that holds fallback ops and is under way; 0: there is none
    last_op_ns: int = 0  # when its last op so far ended
    chunks: int = 0
    placed: tuple[int, int, int] | None = None  # stage, task and op when it was put in the queue
    exit: str = ""  # the variant that its last network with exits ended as
    seen: JobView = NOT_SEEN

    def happened(self, event: type) -> None:
        """Go on to the state that this type of event or action leads to. Raises CoordinationError
        when it cannot happen now."""
        try:
            self.state = TABLE[self.state][event]
        except KeyError:
            raise illegal(self.id, self.dnn, self.state, event) from None

    def show(self) -> JobView:
        """What policies see of it from now on."""
        self.seen = view = _made(
            JobView,
            (
                self.id, self.dnn, self.priority, self.utility, self.constraint_ns,
                self.owner.costs, self.arrival_ns, self.processor, self.enqueued_ns,
                self.deadline_ns, self.stage, self.task, self.tasks, self.next_op, self.passed_op,
                self.executed_ns, self.remaining_ns, self.other_ns, self.away.until_ns, self.gaps,
                self.beta, self.bonus, self.variant, self.variants, self.request,
            ),
        )  # fmt: skip
        return view

    def moved_to(self, processor: str) -> None:
        """It runs there."""
        if processor != self.processor:
            self.processor = processor
            self.show()

    def expired(self, now_ns: int) -> bool:
        """Whether it is a request that is not wanted any more, and has not begun."""
        return self.owner.plan.expires and not self.chunks and now_ns >= self.deadline_ns

    def begin(self) -> None:
        """Before the first op of its current network, which may end as any of its variants."""
        self.next_op = self.passed_op = 0
        self.variant = self.stage_costs.whole
        self.variants = tuple(self.stage_costs.variants)

    def begin_stage(self, stage: int, now_ns: int) -> None:
        """Before preprocessing of a stage."""
        self.stage, self.task, self.tasks = stage, 0, 1
        self.stage_costs, self.prepare_ns = self.owner.costs[stage], now_ns
        self.begin()

    def passed(self, end_op: int) -> bool:
        """Ops ``[next_op, end_op)`` have run: on to the variant's next; whether there is none."""
        costs, passed_op = self.stage_costs, self.passed_op
        self.passed_op = end_op
        if self.variants:
            variants, start = costs.variants, self.next_op
            self.variants = tuple(
                name for name in self.variants if variants[name].next_op[passed_op] == start
            )
            if end_op > costs.run_end[start]:  # a processor that never cuts runs the heads, too
                self.variant = costs.whole
            end_op = variants[self.variant].next_op[end_op]
            if end_op == costs.ops:
                self.exit = self.variant
        self.next_op = end_op
        return end_op == costs.ops

    def vary(self, variant: str) -> None:
        """Go on as another of its ``variants``."""
        self.variant = variant
        self.next_op = self.stage_costs.variants[variant].next_op[self.passed_op]
        self.show()

    def left(self) -> tuple[int, int, int]:
        """What it still needs on the GPU in all its stages: (GPU ns, ns off the GPU, static
        chunks)."""
        gpu_ns, other_ns, chunks = left = self.stage_costs.left(self.next_op, self.variant)
        costs, stage, more = self.owner.costs, self.stage + 1, self.tasks - self.task - 1
        if more == 0 and stage == len(costs):
            return left
        if more:
            task_ns, task_other_ns, task_chunks = self.stage_costs.left(0)
            gpu_ns += more * task_ns
            other_ns += more * task_other_ns
            chunks += more * task_chunks
        while stage < len(costs):
            later = costs[stage]
            later_ns, later_other_ns, later_chunks = later.left(0)
            gpu_ns += int(later.tasks * later_ns)
            other_ns += int(later.tasks * later_other_ns) + self.owner.prepare_ns[stage]
            chunks += round(later.tasks * later_chunks)
            stage += 1
        return gpu_ns, other_ns, chunks


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
        check_chunks(stage.chunks, len(stage.op_ns), where)


def check_chunks(chunks: Sequence[tuple[int, int]], ops: int, where: str) -> None:
    """Raise ConfigError for a static partition that leaves ops out, or runs some twice."""
    ends, starts = [0, *(end for _, end in chunks)], [*(start for start, _ in chunks), ops]
    if chunks and (ends != starts or any(a >= b for a, b in chunks)):
        raise ConfigError(
            f"the static chunks of {where} do not cover ops 0..{ops} in order: {list(chunks)}"
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
