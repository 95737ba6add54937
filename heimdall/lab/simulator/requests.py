"""Requests alone on a virtual clock: models, processors and a policy, and nothing that draws."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from heimdall.coordinator.coordinator import Coordinator
from heimdall.errors import ConfigError
from heimdall.lab.simulator.clients import Answered, Follow, Requests, SimulatedModel
from heimdall.lab.simulator.cores import noise_source
from heimdall.lab.simulator.jobs import AtOnce, Jobs
from heimdall.lab.simulator.processors import Profiled, Together
from heimdall.runtime.loop.frame_loop import Observer
from heimdall.schedulers import Scheduler
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.enums import ChunkMode
from heimdall.vocabulary.events import (
    Action,
    Event,
    ProcessorBack,
    ProcessorLost,
    RenderingStopped,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import Processor

MOVE_NS = 50_000_000  # section 6.3.2 of the Heimdall paper
INTERVAL_NS = 33_333_333  # of the frames, which are not drawn


class RequestSimulation(Jobs):
    """One run, until every request is answered.

    ``noise``: by processor, the relative standard deviation of what ranges take there.
    ``estimates``: how wrong the profile is that the policy is given, a relative standard deviation
    drawn once for each model and processor. ``away``: (processor, from, until) in ns. ``follow``:
    the requests that come of an answer, if any: models, and when from now on. ``together``: how
    long what runs together takes, in ns. ``lone_ns``: by model.
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
        plans = [each.plan for each in models]
        super().__init__(plans, pool=AtOnce(), movers=AtOnce(), move_ns=MOVE_NS)
        self.now_ns = 0
        self._observe = observe
        costs = {each.name: _costs(each) for each in plans}
        self.lone_ns = {name: each.lone_ns for name, each in costs.items()}
        draw = random.Random(seed)
        self.coordinator = Coordinator(
            [_misjudged(each, estimates, draw) for each in plans],
            scheduler=scheduler,
            frame_interval_ns=INTERVAL_NS,
            mode=mode,
            offload=False,
            admission=admission,
            processors=processors,
        )
        spread = noise or {}
        self._profiled = {
            each.id: Profiled(
                self,
                each.id,
                costs,
                noise_source(random.Random(draw.random()), spread.get(each.id, 0.0)),
                together,
            )
            for each in processors
        }
        self.processors = self._profiled
        self._requests = Requests(self, models, follow)
        self._requests.begin(self.now_ns)
        self.clients = dict.fromkeys(costs, self._requests)
        for processor, from_ns, until_ns in away:
            if processor not in self._profiled:
                raise ConfigError(f"there is no processor {processor!r} that could be away")
            self.agenda.add(from_ns, partial(self._lose, processor))
            self.agenda.add(until_ns, ProcessorBack(processor))

    @property
    def answered(self) -> list[Answered]:
        """Requests, in the order of their answers."""
        return self._requests.answered

    @property
    def busy_ns(self) -> dict[str, int]:
        """How long each processor has worked."""
        return {id: each.busy_ns for id, each in self._profiled.items()}

    @property
    def errors(self) -> list[str]:
        """What the policy did wrong."""
        return self.coordinator.faults.messages

    def config(self) -> dict[str, Any]:
        """The coordinator's configuration, for a trace."""
        return self.coordinator.config()

    def run(self, until_ns: int | None = None) -> None:
        """Until nothing is left to happen. Raises ConfigError where requests stay unanswered. With
        ``until_ns``, until then: what is not answered has waited to the end."""
        self.tell(RenderingStopped())
        while (due_ns := self._next_ns()) is not None:
            if until_ns is not None and due_ns > until_ns:
                break
            self.now_ns = max(self.now_ns, due_ns)
            wake_ns = self.coordinator.next_wakeup_ns()
            if wake_ns is not None and wake_ns <= self.now_ns:
                self._do(self.coordinator.wake(self.now_ns), None)
            else:
                self.happen()
        if until_ns is not None:
            self._requests.end()
        elif left := self._requests.unanswered:
            raise ConfigError(f"{left} requests were never answered: nothing ran them")

    def tell(self, event: Event) -> None:
        self._do(self.coordinator.receive(event, self.now_ns), event)

    def _next_ns(self) -> int | None:
        due = self.coordinator.next_wakeup_ns(), self.agenda.next_ns()
        return min((each for each in due if each is not None), default=None)

    def _do(self, actions: list[Action], event: Event | None) -> None:
        if self._observe is not None:
            self._observe(self.now_ns, event, actions)
        self.carry_out(actions)

    def _lose(self, processor: str) -> None:
        self._profiled[processor].lose()
        self.tell(ProcessorLost(processor))


def _costs(plan: DnnPlan) -> StageCosts:
    if len(plan.stages) != 1:
        raise ConfigError(f"model {plan.name!r} must have one network")
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
