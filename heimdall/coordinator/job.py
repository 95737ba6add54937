"""One inference: what the coordinator keeps of it, and the value that policies see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from heimdall.coordinator.dnn import Dnn
from heimdall.coordinator.states import PREPARING, TABLE, State, illegal
from heimdall.schedulers.base import JobView
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.plans import Utility
from heimdall.vocabulary.processors import GPU

_made = tuple.__new__  # a JobView at each end of a chunk: half as long as by its constructor


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
