"""Requests on a virtual clock: models, processors and a policy, without rendering.

A request becomes a job when it arrives, runs range by range on whatever processors the policy
chooses, and is answered when its last op has run, or dropped. Every processor takes as long as
profiled, times random noise; while it is away, what it was at is lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heimdall.coordinator.coordinator import Coordinator
from heimdall.errors import ConfigError
from heimdall.runtime.loop import Observer
from heimdall.runtime.telemetry.jobs import Outcome, Progress
from heimdall.schedulers import Scheduler
from heimdall.schedulers.expected import StageCosts
from heimdall.simulator.agenda import Agenda
from heimdall.simulator.cores import noise_source
from heimdall.vocabulary.enums import ChunkMode
from heimdall.vocabulary.events import (
    NO_JOB,
    Action,
    ChunkFinished,
    DnnMoved,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    InferenceRequested,
    InputReady,
    Move,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RenderingStopped,
    RunChunk,
    RunFallback,
    RunTogether,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import Processor

MOVE_NS = 50_000_000  # section 6.3.2 of the Heimdall paper
WAITED = "waited when it ended"
INTERVAL_NS = 33_333_333  # of the frames that nobody draws


@dataclass(frozen=True)
class SimulatedModel:
    """A model that requests come for: its plan (``queued``; ``constraint_ns`` is their SLO), and
    when each comes, in ns from 0."""

    plan: DnnPlan
    arrivals_ns: Iterable[int]


@dataclass(frozen=True, slots=True)
class Answered(Outcome):
    """What became of the ``request`` of that number."""

    request: int = -1


Follow = Callable[[Answered], Sequence[tuple[str, int]]]
Together = Callable[[RunTogether], int]


@dataclass(frozen=True)
class _ChunkEnded:
    """``parts``: of each job, (job, start, end)."""

    processor: str
    parts: tuple[tuple[int, int, int], ...]
    chunk: int
    took_ns: int


class RequestRun:
    """One run, until every request is answered.

    ``noise``: by processor, the relative standard deviation of what ranges take there.
    ``estimates``: how wrong the profile is that the policy is given, a relative standard deviation
    drawn once for each model and processor. ``away``: (processor, from, until) in ns. ``follow``:
    the requests that come of an answer, if any: models, and when from now on. ``together``: how
    long what runs together takes, in ns. ``answered``: in the order of answers; ``busy_ns``: by
    processor; ``lone_ns``: by model.
    """

    def __init__(
        self,
        models: Sequence[SimulatedModel],
        processors: Sequence[Processor],
        scheduler: str | type[Scheduler] | Scheduler,
        *,
        seed: int = 0,
        noise: Mapping[str, float] | None = None,
        estimates: float = 0.0,
        away: Sequence[tuple[str, int, int]] = (),
        mode: str = ChunkMode.STATIC,
        admission: str = "all",
        follow: Follow | None = None,
        observe: Observer | None = None,
        together: Together | None = None,
    ) -> None:
        self.now_ns = 0
        self.answered: list[Answered] = []
        self.busy_ns = {each.id: 0 for each in processors}
        self._observe, self._follow, self._together = observe, follow, together
        self._plans = {each.plan.name: each.plan for each in models}
        self._costs = {each.plan.name: _costs(each.plan) for each in models}
        self.lone_ns = {name: costs.lone_ns for name, costs in self._costs.items()}
        draw = random.Random(seed)
        told = [_misjudged(each.plan, estimates, draw) for each in models]
        self.coordinator = Coordinator(
            told,
            scheduler=scheduler,
            frame_interval_ns=INTERVAL_NS,
            mode=mode,
            offload=False,
            admission=admission,
            processors=processors,
        )
        spread = noise or {}
        self._noise = {
            each.id: noise_source(random.Random(draw.random()), spread.get(each.id, 0.0))
            for each in processors
        }
        self._agenda: Agenda[Event | _ChunkEnded] = Agenda()
        self._submitted: dict[int, tuple[str, int, int]] = {}  # by request: model, when, SLO
        self._requests: dict[int, int] = {}  # by job
        self._progress = Progress()
        self._running: dict[str, dict[int, int]] = {each.id: {} for each in processors}
        self._gone: set[int] = set()  # numbers of chunks that a lost processor was at
        self._chunks = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: self._prepare,
            RunChunk: self._run_chunk,
            RunTogether: self._run_together,
            RunFallback: self._run_fallback,
            Move: self._move,
            Finish: self._finish,
            Drop: self._drop,
        }
        self._submit(models)
        for processor, from_ns, until_ns in away:
            if processor not in self._running:
                raise ConfigError(f"there is no processor {processor!r} that could be away")
            self._agenda.add(from_ns, ProcessorLost(processor))
            self._agenda.add(until_ns, ProcessorBack(processor))

    def _submit(self, models: Sequence[SimulatedModel]) -> None:
        arrivals = sorted(
            (at_ns, index) for index, each in enumerate(models) for at_ns in each.arrivals_ns
        )
        for at_ns, index in arrivals:
            self._ask(models[index].plan, at_ns)

    def _ask(self, plan: DnnPlan, at_ns: int) -> None:
        request = len(self._submitted)
        self._submitted[request] = plan.name, at_ns, plan.constraint_ns
        self._agenda.add(at_ns, InferenceRequested(plan.name, request))

    def run(self, until_ns: int | None = None) -> None:
        """Until nothing is left to happen. Raises ConfigError where requests stay unanswered. With
        ``until_ns``, until then: what is not answered has waited to the end."""
        self._tell(RenderingStopped())
        while (due_ns := self._next_ns()) is not None:
            if until_ns is not None and due_ns > until_ns:
                break
            self.now_ns = max(self.now_ns, due_ns)
            wake_ns = self.coordinator.next_wakeup_ns()
            if wake_ns is not None and wake_ns <= self.now_ns:
                self._do(self.coordinator.wake(self.now_ns), None)
                continue
            _, event = self._agenda.pop()
            if isinstance(event, _ChunkEnded):
                self._chunk_ended(event)
                continue
            if isinstance(event, ProcessorLost):
                self._gone.update(self._running[event.processor])
            self._tell(event)
        if until_ns is not None:
            answered = {each.request for each in self.answered}
            jobs = {request: job for job, request in self._requests.items()}
            for request in sorted(self._submitted.keys() - answered):
                model, _, _ = self._submitted[request]
                drop = Drop(jobs.get(request, NO_JOB), model, WAITED, request=request)
                self._answer(drop, request, None, WAITED)
        elif len(self.answered) < len(self._submitted):
            left = len(self._submitted) - len(self.answered)
            raise ConfigError(f"{left} requests were never answered: nothing ran them")

    def _next_ns(self) -> int | None:
        due = self.coordinator.next_wakeup_ns(), self._agenda.next_ns()
        return min((each for each in due if each is not None), default=None)

    def _tell(self, event: Event) -> None:
        self._do(self.coordinator.receive(event, self.now_ns), event)

    def _do(self, actions: list[Action], event: Event | None) -> None:
        if self._observe is not None:
            self._observe(self.now_ns, event, actions)
        for action in actions:
            self._handlers[type(action)](action)

    # -- actions ---------------------------------------------------------------------------

    def _prepare(self, action: Prepare) -> None:
        if action.request is not None:
            self._requests[action.job] = action.request
        self._agenda.add(self.now_ns, InputReady(action.job))

    def _run_chunk(self, action: RunChunk) -> None:
        self._progress.acted(action)
        costs, processor = self._costs[action.dnn], action.processor
        took_ns = costs.on_ns(processor, action.start_op, action.end_op)
        assert took_ns is not None
        self._start(processor, ((action.job, action.start_op, action.end_op),), took_ns)

    def _run_together(self, action: RunTogether) -> None:
        if self._together is None:
            raise ConfigError(
                f"nothing is known of what runs together on {action.processor!r}: choose a device "
                "whose profile says how many work-groups it holds"
            )
        self._start(action.processor, action.parts, self._together(action))

    def _start(self, processor: str, parts: tuple[tuple[int, int, int], ...], took_ns: int) -> None:
        took_ns = max(1, int(took_ns * self._noise[processor]()))
        self._chunks += 1
        self._running[processor][self._chunks] = self.now_ns
        ended = _ChunkEnded(processor, parts, self._chunks, took_ns)
        self._agenda.add(self.now_ns + took_ns, ended)

    def _chunk_ended(self, ended: _ChunkEnded) -> None:
        processor = ended.processor
        del self._running[processor][ended.chunk]
        if ended.chunk in self._gone:
            self._gone.remove(ended.chunk)
            return
        self.busy_ns[processor] += ended.took_ns
        for job, start, end in ended.parts:
            self._tell(ChunkFinished(job, processor, start, end, ended.took_ns))

    def _run_fallback(self, action: RunFallback) -> None:
        took_ns = self._costs[action.dnn].fallback_ns(action.start_op, action.end_op)
        event = FallbackFinished(action.job, action.end_op, took_ns)
        self._agenda.add(self.now_ns + took_ns, event)

    def _move(self, action: Move) -> None:
        self._agenda.add(self.now_ns + MOVE_NS, DnnMoved(action.dnn, action.processor))

    def _finish(self, action: Finish) -> None:
        self._answer(action, self._requests.pop(action.job), self.now_ns, "")

    def _drop(self, action: Drop) -> None:
        self._requests.pop(action.job, None)
        if action.request is not None:
            self._answer(action, action.request, None, action.reason)

    def _answer(
        self, action: Finish | Drop, request: int, finished_ns: int | None, reason: str
    ) -> None:
        model, submitted_ns, slo_ns = self._submitted[request]
        taken = self._progress.of(action, self._plans[model])
        answered = Answered(model, submitted_ns, finished_ns, slo_ns, reason, *taken, request)
        self.answered.append(answered)
        for name, at_ns in self._follow(answered) if self._follow else ():
            self._ask(self._plans[name], at_ns)


def _costs(plan: DnnPlan) -> StageCosts:
    if not plan.queued or len(plan.stages) != 1:
        raise ConfigError(f"model {plan.name!r} must be queued and have one network")
    return StageCosts(plan.stages[0])


def _misjudged(plan: DnnPlan, spread: float, draw: random.Random) -> DnnPlan:
    """The plan with all latencies of a processor wrong by the same random factor."""
    if spread <= 0:
        return plan
    wrong = noise_source(draw, spread)
    (stage,) = plan.stages
    scaled = tuple((name, _scaled(op_ns, wrong())) for name, op_ns in stage.on)
    factor = wrong()
    op_ns = tuple(round(ns * factor) for ns in stage.op_ns)
    changed = replace(stage, on=scaled, op_ns=op_ns, cpu_ns=round(stage.cpu_ns * wrong()))
    return replace(plan, stages=(changed,))


def _scaled(op_ns: Sequence[int | None], factor: float) -> tuple[int | None, ...]:
    return tuple(None if ns is None else round(ns * factor) for ns in op_ns)
