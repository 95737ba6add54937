"""TOP: a launcher, and blocks of several networks that run together (Lin et al., TPDS 2025).

A learned actor says how often each model's queue is drawn from, and which blocks are combined
(section V-B). It is asked at the beginning, and whenever queues have become so unequal that the
variance of their lengths is above its threshold. Of a combined block those networks take part of
which a request has come that far; between two blocks of a network one request waits at most.

The paper runs the combined block first of which most have their input (Ratio_in, section VI-A). By
that alone, four blocks one of which has input would never run while two do of which one has: here
the share counts times how old the oldest of its requests is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from heimdall.errors import ConfigError
from heimdall.lab.policies.grouped import Member, Stager, assignments, variance
from heimdall.schedulers.base import Choice, FreeRanges, JobView, View, wait
from heimdall.vocabulary.processors import GPU

SHORTEST_S = 1e-3  # launch interval
_SAMPLE_NS = 5_000_000  # between two samples of the state, at least
_PAUSE_NS = 100_000_000  # between two decisions, at least


@dataclass(frozen=True)
class Task:
    """What an actor decides about. ``models`` with their numbers of ``blocks``; at most
    ``most_blocks`` of them are combined; ``samples``: how many samples a state has; ``threshold``:
    the variance of queue lengths above which it is asked again."""

    models: tuple[str, ...]
    blocks: tuple[int, ...]
    most_blocks: int
    samples: int = 4
    threshold: float = 100.0

    @property
    def state_size(self) -> int:
        return self.samples * (len(self.models) + sum(self.blocks))


class Actor(Protocol):
    """Answers a state with numbers from 0 to 1: first one for each model's launch interval, then
    one for each block, model by model. ``hash``: of what it was made of."""

    task: Task
    hash: str

    def __call__(self, state: Sequence[float]) -> Sequence[float]: ...


@dataclass(frozen=True)
class Plan:
    """What the numbers mean. ``intervals_ns``: by model; ``combined``: blocks that run together."""

    intervals_ns: dict[str, int]
    combined: tuple[tuple[Member, ...], ...]

    @property
    def largest(self) -> int:
        """How many blocks are combined at most."""
        return max(map(len, self.combined))


def plan_of(task: Task, numbers: Sequence[float]) -> Plan:
    """Figs. 9 and 10: intervals, here on a logarithmic scale from a millisecond to a second, and
    blocks whose numbers fall into the same of as many equal parts of [0, 1] as there are blocks.
    """
    count = len(task.models)
    total = sum(task.blocks)
    if len(numbers) != count + total:
        raise ConfigError(
            f"the actor answers {len(numbers)} numbers where {count + total} are needed"
        )
    parts: dict[int, list[Member]] = {}
    rest = iter(numbers[count:])
    for model, blocks in zip(task.models, task.blocks, strict=True):
        for block in range(blocks):
            part = min(int(max(next(rest), 0.0) * total), total - 1)
            parts.setdefault(part, []).append((model, block))
    intervals_ns = {
        model: round(1e9 * SHORTEST_S ** (1 - min(max(number, 0.0), 1.0)))
        for model, number in zip(task.models, numbers, strict=False)
    }
    return Plan(intervals_ns, tuple(tuple(parts[part]) for part in sorted(parts)))


def apart(task: Task, plan: Plan) -> Plan:
    """This plan, but with every block on its own."""
    members = tuple((member,) for blocks in plan.combined for member in blocks)
    return Plan(plan.intervals_ns, members)


class Top(FreeRanges):
    """``actor`` decides, ``stages`` says how the ops of a combined block run; ``made_of``: what
    a replay needs beside the actor's hash. ``always``: the actor is asked at every step,
    which lets it learn."""

    name = "top"
    partition = "blocks"
    together = True

    def __init__(
        self,
        actor: Actor,
        stages: Stager,
        made_of: Mapping[str, Any] | None = None,
        *,
        always: bool = False,
    ) -> None:
        self.actor, self.task, self._stages = actor, actor.task, stages
        self._made_of, self._always = dict(made_of or {}), always
        self.plan: Plan | None = None
        self._samples: deque[tuple[float, ...]] = deque(maxlen=self.task.samples)
        self._sampled_ns = self._decided_ns = -(1 << 62)
        self._launch_ns = dict.fromkeys(self.task.models, 0)  # when the next may be

    def config(self) -> dict[str, Any]:
        return {"actor": self.actor.hash, **self._made_of}

    def select(self, view: View, now_ns: int) -> Choice | None:
        if view.running or GPU not in view.idle:
            return None
        waiting = dict.fromkeys(self.task.models, 0)
        at: dict[Member, JobView] = {}  # the first that is to begin a block
        for job in view.ready:
            name = job.dnn
            if name not in waiting:
                raise ConfigError(f"the actor was trained for {self.task.models}, not for {name!r}")
            if job.next_op == 0:
                waiting[name] += 1
                at.setdefault((name, 0), job)
            else:
                at[name, self._block(job)] = job
        self._sample(at, waiting, now_ns)
        if self.plan is None or (
            now_ns >= self._decided_ns + _PAUSE_NS
            and (self._always or variance(list(waiting.values())) > self.task.threshold)
        ):
            self._decide(now_ns)
        return self._next(at, view, now_ns)

    # -- deciding --------------------------------------------------------------------------

    def _sample(self, at: dict[Member, JobView], waiting: dict[str, int], now_ns: int) -> None:
        """Eq. 1: which blocks requests have come to, and how far queues are from their mean."""
        if now_ns < self._sampled_ns + _SAMPLE_NS:
            return
        self._sampled_ns = now_ns
        mean, scale = sum(waiting.values()) / len(waiting), self.task.threshold**0.5
        progress = [
            float((model, block) in at)
            for model, blocks in zip(self.task.models, self.task.blocks, strict=True)
            for block in range(blocks)
        ]
        apart = [max(-3.0, min(3.0, (count - mean) / scale)) for count in waiting.values()]
        self._samples.append((*progress, *apart))

    def _decide(self, now_ns: int) -> None:
        self._decided_ns = now_ns
        rows = list(self._samples)
        rows = [rows[0]] * (self.task.samples - len(rows)) + rows
        plan = plan_of(self.task, self.actor([number for row in rows for number in row]))
        if plan.largest <= self.task.most_blocks:
            self.plan = plan
        elif self.plan is None:  # a superblock: what was before goes on (section V-D)
            self.plan = apart(self.task, plan)

    # -- running ---------------------------------------------------------------------------

    def _next(self, at: dict[Member, JobView], view: View, now_ns: int) -> Choice | None:
        """The combined block of which most has its input, and has waited longest."""
        assert self.plan is not None
        held = {
            model for model in self.task.models if now_ns < self._launch_ns[model]
        }  # by the launcher
        best: tuple[float, int] | None = None
        chosen: tuple[tuple[Member, ...], dict[int, JobView]] | None = None
        for members in self.plan.combined:
            jobs = self._able(members, at, held)
            if not jobs:
                continue
            waited_ns = now_ns - min(job.arrival_ns for job in jobs.values())
            rank = len(jobs) / len(members) * (waited_ns + 1), -min(job.id for job in jobs.values())
            if best is None or rank > best:
                best, chosen = rank, (members, jobs)
        if chosen is None:
            due = [self._launch_ns[model] for model in held if (model, 0) in at]
            return wait(min(due)) if due else None
        members, jobs = chosen
        for index, job in jobs.items():
            if members[index][1] == 0:
                self._launch_ns[job.dnn] = now_ns + self.plan.intervals_ns[job.dnn]
        ends = {index: job.costs[0].block_end(job.next_op) for index, job in jobs.items()}
        run = assignments(self._stages(members), jobs, ends, GPU)
        return Choice(run, f"{len(jobs)} of {len(members)} blocks have input")

    def _able(
        self, members: Sequence[Member], at: dict[Member, JobView], held: set[str]
    ) -> dict[int, JobView]:
        """By number of the member, the requests that can run their block: the place behind it is
        free, or about to be."""
        found: dict[int, JobView] = {}
        last = dict(zip(self.task.models, self.task.blocks, strict=True))
        for index in sorted(range(len(members)), key=lambda each: -members[each][1]):
            model, block = members[index]
            job = at.get((model, block))
            if job is None or (block == 0 and model in held):
                continue
            behind = model, block + 1
            leaves = behind in members and members.index(behind) in found
            if block + 1 == last[model] or behind not in at or leaves:
                found[index] = job
        return found

    def _block(self, job: JobView) -> int:
        """The number of the block that a job is to begin."""
        chunks = job.costs[job.stage].plan.chunks
        return next(index for index, (start, _) in enumerate(chunks) if start == job.next_op)
