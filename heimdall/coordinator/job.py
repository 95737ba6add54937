"""One inference: what the coordinator keeps of it."""

from __future__ import annotations

from dataclasses import dataclass

from heimdall.coordinator.dnn import Dnn
from heimdall.coordinator.states import PREPARING, TABLE, State, illegal
from heimdall.schedulers.base import JobView
from heimdall.schedulers.expected import StageCosts


@dataclass(slots=True, eq=False, kw_only=True)
class Job(JobView):
    """What the coordinator keeps of a job beyond what policies see. Only ``happened`` sets
    ``state``."""

    owner: Dnn
    stage_costs: StageCosts  # of the current stage
    state: State = PREPARING
    prepare_ns: int = 0  # when preprocessing of the current stage was asked for
    running_end_op: int = 0
    may_end_early: bool = False  # the chunk that runs
    yields: bool = False  # and has been asked to
    chunk_begin_ns: int = 0  # when it was handed to its processor
    chunk_end_ns: int = 0  # when it is expected to end
    together: bool = False  # the chunk that runs is a part of RunTogether
    chunk_end_op: int = 0  # of a chunk that holds fallback ops and is under way; 0: there is none
    left_ns: int = 0  # when it last left for the pool's fallback ops
    last_op_ns: int = 0  # when its last op so far ended
    chunks: int = 0
    placed: tuple[int, int, int] | None = None  # stage, task and op when it was put in the queue
    exit: str = ""  # the variant that its last network with exits ended as

    def happened(self, event: type) -> None:
        """Go on to the state that this type of event or action leads to. Raises CoordinationError
        when it cannot happen now."""
        try:
            self.state = TABLE[self.state][event]
        except KeyError:
            raise illegal(self.id, self.dnn, self.state, event) from None

    def begin(self) -> None:
        """Before the first op of its current network, which may end as any of its variants."""
        self.next_op = self.passed_op = 0
        self.variant = self.stage_costs.whole
        self.variants = tuple(self.stage_costs.ways)

    def passed(self, end_op: int) -> bool:
        """Ops ``[next_op, end_op)`` have run: on to the variant's next; whether there is none."""
        costs, passed_op = self.stage_costs, self.passed_op
        self.passed_op = end_op
        if self.variants:
            ways, start = costs.ways, self.next_op
            self.variants = tuple(
                name for name in self.variants if ways[name].next_op[passed_op] == start
            )
            if end_op > costs.run_end[start]:  # a processor that never cuts runs the heads, too
                self.variant = costs.whole
            end_op = ways[self.variant].next_op[end_op]
            if end_op == costs.ops:
                self.exit = self.variant
        self.next_op = end_op
        return end_op == costs.ops

    def vary(self, variant: str) -> bool:
        """Go on as another variant; whether it may still become that one."""
        if variant not in self.variants:
            return False
        self.variant = variant
        self.next_op = self.stage_costs.ways[variant].next_op[self.passed_op]
        return True

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
