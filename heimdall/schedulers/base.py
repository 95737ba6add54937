"""What a scheduling policy sees, and what it answers.

A policy is asked at scheduling events (``Scheduler.triggers``) what to start now. It reads the
view, which holds values and nothing of the coordinator's own, and returns a ``Choice``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, Protocol

from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.enums import Trigger
from heimdall.vocabulary.events import Event
from heimdall.vocabulary.plans import Utility
from heimdall.vocabulary.processors import GPU

# Plain strings and globals: decisions are made of look-ups of them (see vocabulary.processors).
GAP_OPENED, JOB_ARRIVED, CHUNK_ENDED, FALLBACK_ENDED = Trigger.values()
TRIGGERS = frozenset(Trigger.values())
ANY_EVENT = TRIGGERS | {""}  # whatever has happened, and whenever a policy wanted to be woken

NS_PER_MS = 1e6


class JobView(NamedTuple):
    """One job in flight: its number, how urgent, how far, and what it may still cost. A value: what
    becomes of the job later does not show in it.

    Ops count within the current task of the current stage.
    """

    id: int
    dnn: str
    priority: str
    utility: Utility
    constraint_ns: int
    costs: Sequence[StageCosts]  # one a stage: expected time of any op range, on any processor
    arrival_ns: int  # when it was admitted, before preprocessing
    # Where it has to run; of a policy that binds no DNN (``Scheduler.binds``): where it ran last.
    processor: str = GPU
    enqueued_ns: int = 0  # t_start of Eq. 3: when its first input was ready
    deadline_ns: int = 0  # enqueued + constraint; of a request: submitted + SLO
    stage: int = 0
    task: int = 0
    tasks: int = 1
    next_op: int = 0
    passed_op: int = 0  # where its last chunk ended; next_op is the next of its variant from here
    executed_ns: int = 0  # processor time it has had
    remaining_ns: int = 0  # expected processor time of everything left, later stages included
    other_ns: int = 0  # expected time left off the processor: fallback ops, preparing crops
    back_ns: int = 0  # when the fallback ops that it is away for are expected to be done
    gaps: int = 1  # in how many gaps all that is left fits, one after the other (static: chunks)
    beta: float = 1.0  # Eq. 3's beta; under "aging" scaled by content variation
    bonus: float = 0.0  # alpha * C of Eq. 2; zero under "aging"
    variant: str = ""  # of the current stage's network, where that has early exits
    variants: tuple[str, ...] = ()  # those that it may still end as, least accurate first
    request: int | None = None  # the number of the request that it answers, if it does

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


class Lookup(Protocol):
    """What may be asked of a moment; worked out only when asked for."""

    def free_ns(self) -> Mapping[str, int]:
        """See ``View.free_ns``."""

    def running(self) -> Sequence[JobView]:
        """See ``View.running``."""

    def away(self) -> Sequence[JobView]:
        """See ``View.away``."""

    def preparing(self) -> Sequence[str]:
        """See ``View.preparing``."""

    def longest(self, job: JobView, processor: str, hold_ns: float = 0) -> int:
        """See ``View.longest``."""

    def fitting(self, jobs: Sequence[JobView], processor: str) -> dict[int, int]:
        """See ``View.fitting``."""


class View(NamedTuple):
    """The moment of a decision, for all processors that have room.

    ``ready``: the jobs that wait for a processor and could run there, in the queue's order, each at
    the op ``next_op`` of its current stage, whose expected times are ``job.costs[job.stage]``
    (``on_ns(processor, start, end)``, None where an op is not supported; ``block_end(op)``: where
    the block, or unit, of its partition ends, or a fallback op stops it). ``idle``: a processor's
    id for each free lane of it, in the order of ``processors``, without those that the policy does
    not decide for, and the one that draws now. ``interval_ns``: from one frame to the next.
    ``gap_end_ns``: when rendering takes the GPU back; never before now. ``trigger``: why it is
    asked. ``cuts_anywhere``: a range may be chosen shorter than the longest that fits.
    ``handoff_ns``: by processor, what a chunk takes beside its own time until one hears of its end,
    as it was lately.
    """

    ready: Sequence[JobView]
    idle: Sequence[str]
    interval_ns: int
    gap_end_ns: int
    trigger: str
    cuts_anywhere: bool
    handoff_ns: Mapping[str, float]
    lookup: Lookup

    @property
    def free_ns(self) -> Mapping[str, int]:
        """By processor that works: when it is expected to have a free lane; never before now."""
        return self.lookup.free_ns()

    @property
    def processors(self) -> Sequence[str]:
        """All processors that work."""
        return tuple(self.lookup.free_ns())

    @property
    def running(self) -> Sequence[JobView]:
        """The jobs that have a processor."""
        return self.lookup.running()

    @property
    def away(self) -> Sequence[JobView]:
        """The jobs that run an op on the CPU, and will want the GPU back."""
        return self.lookup.away()

    @property
    def preparing(self) -> Sequence[str]:
        """The DNNs of jobs that still wait for an input."""
        return self.lookup.preparing()

    def longest(self, job: JobView, processor: str = GPU, hold_ns: float = 0) -> int:
        """The op before which the longest range ends that a job may run there now: what fits the
        room in the gap; ``next_op`` where nothing does. ``hold_ns``: for how long it would hold the
        GPU for fallback ops between two of that (see ``Assignment``)."""
        return self.lookup.longest(job, processor, hold_ns)

    def fitting(self, processor: str = GPU) -> dict[int, int]:
        """``longest`` by the number of each job that is ready, of those of which anything fits."""
        return self.lookup.fitting(self.ready, processor)


@dataclass(slots=True)  # not frozen: made in every decision, and that takes thrice as long
class Assignment:
    """Run ``[next_op, end_op)`` of a job on ``processor``. ``variant``: one of the job's variants
    to go on as, "" for the one it is; ``next_op`` is that one's next from ``passed_op`` on.
    ``holds``: the job keeps the GPU while fallback ops in the range run on the CPU; else a range
    ends at the first one, and others run meanwhile.

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
    holds: bool = False


@dataclass(slots=True)
class Choice:
    """What to start now, and why ("its deadline is at risk", "lowest utility", ...).
    ``wake_ns``: the policy wants to be asked again then, though nothing has happened."""

    assignments: tuple[Assignment, ...]
    reason: str
    expected_ns: int = 0  # of what runs together, where the policy knows; 0: the longest groups
    wake_ns: float = inf

    @property
    def together(self) -> bool:
        """True if all assignments are one piece of work."""
        for each in self.assignments:  # noqa: SIM110 - any() takes thrice as long
            if each.group or each.stage or each.ops:
                return True
        return False


def wait(until_ns: float) -> Choice:
    """Start nothing before then, unless something happens."""
    return Choice((), "", wake_ns=until_ns)


class Scheduler(ABC):
    """One policy, which declares how it differs from others.

    ``binds``: a DNN is bound to one processor, and the offload step moves it (Heimdall, section
    6.3.2); else each range of its jobs chooses a processor anew (Band). ``triggers``: the
    scheduling events at which it wants to be asked. ``processors``: those it decides for
    (None: all); others serve jobs as they come. ``requeues``: what is left of a job when a range of
    it has run is placed anew (Band's ENQUEUEREMAINING); else it keeps its place (SPLIT's full
    preemption). ``partition``: the strategy that networks are best cut by for it; None: by the
    chunk mode. ``together``: it chooses groups of ops that run at the same time, on processors with
    several lanes. ``exits``: its jobs may end at early exits, so DNNs that come with or without
    them have them.
    """

    name: str
    binds: bool = True
    triggers: frozenset[str] = TRIGGERS
    processors: frozenset[str] | None = frozenset({GPU})
    requeues: bool = False
    partition: str | None = None
    together: bool = False
    exits: bool = False

    @abstractmethod
    def select(self, view: View, now_ns: int) -> Choice | None:
        """What to start now: one assignment for an idle lane and a job at most, the job's ops from
        ``next_op`` to ``end_op`` on ``processor``; or what runs together on a processor of which
        all lanes are idle. None, or no assignment: nothing. ``view.ready`` is never empty. A policy
        that decides for no other processor than the one that draws is asked when something fits
        there."""

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        """Where ``job``, which has just become ready, goes in ``queue`` (all unfinished jobs, those
        that run included): before the job with that index. Default: behind all that were admitted
        before it."""
        index = len(queue)
        while index and queue[index - 1].id > job.id:
            index -= 1
        return index

    def hopeless(self, job: JobView, now_ns: int) -> str:
        """Why a request that waits is to be dropped, "" to keep it. Default: none ever is."""
        return ""

    def preempts(self, job: JobView, running: JobView) -> bool:
        """Whether the chunk that ``running`` has on the GPU shall end early for ``job``, which
        has just become ready."""
        return False

    def config(self) -> dict[str, Any]:
        """What the scheduler was made of beside its name, as JSON data: a replay needs the same."""
        return {}

    def observe(self, event: Event) -> None:  # noqa: B027 - optional
        """Hear every event, for policies that learn."""


class FreeRanges(Scheduler):
    """A policy that chooses a processor anew for each range (Band, Fig. 11; SPLIT, Algorithm 1),
    and is asked whatever has happened. Where rendering has a processor for itself between gaps, the
    coordinator shortens or withholds what does not fit; such a policy need not know."""

    binds = False
    triggers = ANY_EVENT
    processors = None
    partition = "whole"
