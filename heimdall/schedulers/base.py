"""What a scheduling policy sees, and what it answers.

A policy is asked at scheduling events (``Scheduler.triggers``) which of the jobs that could run
on a processor runs next. It reads the view, mutates nothing, and returns a ``Choice``. The
objects of a view belong to the coordinator and are current only during the call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.enums import Trigger
from heimdall.vocabulary.events import Event
from heimdall.vocabulary.plans import Utility
from heimdall.vocabulary.processors import GPU

# Plain strings and globals: decisions are made of look-ups of them (see vocabulary.processors).
GAP_OPENED, JOB_ARRIVED, CHUNK_ENDED, FALLBACK_ENDED = Trigger.values()
TRIGGERS = frozenset(Trigger.values())

NS_PER_MS = 1e6


@dataclass(slots=True, eq=False)
class JobView:
    """One job in flight: who it is, how urgent, how far, and what it may still cost.

    Not frozen, because the coordinator keeps one object a job and refreshes it in place (a new
    object for each job and decision would cost more than the decision); policies only read it.
    Ops count within the current task of the current stage.
    """

    id: int
    dnn: str
    priority: str
    utility: Utility
    constraint_ns: int
    costs: Sequence[StageCosts]  # one a stage: expected time of any op range, GPU and CPU
    arrival_ns: int  # when it was admitted, before preprocessing
    processor: str = GPU
    enqueued: bool = False  # its first input is ready: latency and utility count from then on
    enqueued_ns: int = 0  # t_start of Eq. 3: when that was
    deadline_ns: int = 0  # enqueued + constraint
    stage: int = 0
    task: int = 0
    tasks: int = 1
    next_op: int = 0
    passed_op: int = 0  # where its last chunk ended; next_op is the next of its variant from here
    end_op: int = 0  # the chunk proposed for this decision is [next_op, end_op)
    executed_ns: int = 0  # processor time it has had
    remaining_ns: int = 0  # expected processor time of everything left, later stages included
    other_ns: int = 0  # expected time left off the processor: fallback ops, preparing crops
    back_ns: int = 0  # when the fallback ops that it is away for are expected to be done
    gaps: int = 1  # in how many gaps all that is left fits, one after the other (static: chunks)
    beta: float = 1.0  # Eq. 3's beta; under "aging" scaled by content variation
    bonus: float = 0.0  # alpha * C of Eq. 2; zero under "aging"
    variant: str = ""  # of the current stage's network, where that has early exits
    variants: tuple[str, ...] = ()  # those that it may still end as, least accurate first
    request: int | None = None  # of a queued DNN

    def utility_at(self, now_ns: int) -> float:
        """U(t) of Eq. 2: falls from l0 as the job's latency grows."""
        return self.utility.l0 - self.loss_at(now_ns) + self.bonus

    def loss_at(self, now_ns: int) -> float:
        """What Eq. 3 subtracts from l0 by then."""
        age_ms, gamma = (now_ns - self.enqueued_ns) / NS_PER_MS, self.utility.gamma
        if age_ms <= 0:
            return 0.0
        loss = self.beta * (age_ms if gamma == 1.0 else age_ms**gamma)
        return loss * loss

    def loss_between(self, now_ns: int, later_ns: int) -> float:
        """How much utility waiting from ``now_ns`` until ``later_ns`` costs."""
        age_ms = (now_ns - self.enqueued_ns) / NS_PER_MS
        if self.utility.gamma != 1.0 or age_ms < 0:
            return self.loss_at(later_ns) - self.loss_at(now_ns)
        more_ms = (later_ns - now_ns) / NS_PER_MS  # (age + more)^2 - age^2
        return self.beta * self.beta * more_ms * (2 * age_ms + more_ms)


@dataclass(slots=True)
class View:
    """The moment of a decision, for one idle processor.

    Not frozen for the same reason as the jobs: one object lives as long as its coordinator.
    ``jobs`` could run on it now, each for the chunk ``[next_op, end_op)`` that fits; ``in_flight``
    are all jobs admitted (running, preparing and in fallback too); ``away`` are those that run
    an op on the CPU and will want this processor back.
    """

    processor: str
    trigger: str
    jobs: Sequence[JobView]
    in_flight: Collection[JobView]
    away: Sequence[JobView]
    gap_end_ns: int  # when rendering takes the GPU back; never before now
    interval_ns: int  # from one frame to the next
    cuts_anywhere: bool = True  # a chunk may be chosen shorter than proposed


@dataclass(slots=True)  # not frozen: made in every decision, and that takes thrice as long
class Assignment:
    """Run ``[next_op, end_op)`` of a job on ``processor``. ``variant``: one of the job's variants
    to go on as, "" for the one it is; ``next_op`` is that one's next from ``passed_op`` on.

    Several with ``group`` or ``stage`` (or ``ops``) run together, on a processor that has a lane
    for each group: stages one after the other, the groups of a stage at the same time. ``ops``: the
    op ranges of the group, where they are not those from where the job's last assignment ends.
    """

    job: int
    end_op: int
    processor: str = GPU
    variant: str = ""
    group: int = 0
    stage: int = 0
    ops: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Choice:
    """What to start now, and why ("deadline", "lowest utility", ...)."""

    assignments: tuple[Assignment, ...]
    reason: str
    expected_ns: int = 0  # of what runs together, where the policy knows; 0: the longest groups

    @property
    def together(self) -> bool:
        """Whether its assignments are one piece of work."""
        return any(each.group or each.stage or each.ops for each in self.assignments)


def run(job: JobView, reason: str) -> Choice:
    """The usual choice: this job, for the whole chunk that was proposed."""
    return Choice((Assignment(job.id, job.end_op, job.processor),), reason)


class Scheduler(ABC):
    """One policy. ``triggers``: the scheduling events at which it wants to be asked;
    ``processors``: those it decides for (the coordinator serves others first come first served).
    ``exits``: its jobs may end at early exits, so DNNs that come with or without them have them.
    """

    name: str
    triggers: frozenset[str] = TRIGGERS
    processors: frozenset[str] = frozenset({GPU})
    exits: bool = False

    @abstractmethod
    def select(self, view: View, now_ns: int) -> Choice | None:
        """Choose among ``view.jobs`` (never empty), or None to leave the processor idle."""

    def preempts(self, job: JobView, running: JobView) -> bool:
        """Whether the chunk that ``running`` has on the GPU shall end early for ``job``, which
        has just become ready."""
        return False

    def config(self) -> dict[str, Any]:
        """What it was made of beside its name, as JSON data: a replay needs the same."""
        return {}

    def observe(self, event: Event) -> None:  # noqa: B027 - optional
        """Hear every event, for policies that learn."""
