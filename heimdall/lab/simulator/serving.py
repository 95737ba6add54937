"""A scenario of requests on a device with several processors under a system: the summary of a run.

The counterpart of ``simulate`` where nothing is drawn. Every request counts: there is no warm-up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.app import App
from heimdall.app.options import check_number
from heimdall.errors import ConfigError, unknown
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.score import score
from heimdall.lab.bench.settings import LONGEST_S
from heimdall.lab.bench.systems import System, queue_names
from heimdall.lab.bench.traffic import Traffic
from heimdall.lab.policies.fixed import Fixed
from heimdall.lab.simulator.clients import Answered, Follow, SimulatedModel
from heimdall.lab.simulator.cores import noise_source
from heimdall.lab.simulator.device import load_device
from heimdall.lab.simulator.machine import Machine
from heimdall.lab.simulator.mapping import balanced, numbers_a_round
from heimdall.lab.simulator.miss_forest import MissForest
from heimdall.lab.simulator.phones import is_phone
from heimdall.lab.simulator.request_variations import vary_requests
from heimdall.lab.simulator.requests import RequestSimulation
from heimdall.lab.simulator.scaling import by_misses, search
from heimdall.lab.simulator.schedulability import late_share
from heimdall.lab.simulator.several import SeveralDevice, alone_ns
from heimdall.lab.simulator.together import policies
from heimdall.lab.simulator.together.device import TogetherDevice, load_device_for_requests
from heimdall.lab.simulator.together.watched import Watched
from heimdall.lab.simulator.undrawn import UncoordinatedRequests
from heimdall.runtime.loop.frame_loop import Observer
from heimdall.runtime.telemetry.figures import SCHEMA, processor_figures
from heimdall.runtime.telemetry.jobs import (
    SLO,
    accuracy,
    request_figures,
    throughput_hz,
    violations,
)
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.schedulers import Scheduler
from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.utility import utility_for
from heimdall.vocabulary.enums import Priority, ProcessorKind
from heimdall.vocabulary.events import Action, ChunkFinished, Event, RunChunk, RunTogether
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import Processor

Requested = RequestSimulation | UncoordinatedRequests
NO_SLO_NS = 3_600_000_000_000  # the latency constraint of no SLO: nothing waits for an hour
_NS_PER_MS = 1e6
_SEARCH_S, _SEARCH_SEED = 2.0, 1_000_003  # of the runs of a search, apart from those reported
_DRAWS = 20_000  # of noise, for its 99th percentile


@dataclass(frozen=True)
class RequestExperiment:
    """A scenario of requests on a device under a system: all of a simulation but its chances.
    ``values``: what was varied; ``machine``: the device as systems without a coordinator know
    it."""

    scenario: Scenario
    device: SeveralDevice
    system: System
    values: Mapping[str, Any] = field(default_factory=dict)
    machine: Machine | None = None

    def warn(self) -> None:
        """Nothing is known to be wrong before it runs."""

    @cached_property
    def stages(self) -> dict[str, StagePlan]:
        """For each model its network, cut as the system wants it."""
        return {name: self._stage(name) for name in self.scenario.models}

    def _stage(self, name: str) -> StagePlan:
        row, reference = self.system.queueing, self.scenario.reference(name)
        if row is None:
            return self.device.stage_of_two(reference)
        low = self.scenario.models[name].priority == Priority.LOW
        partition = row.best_effort if low and row.best_effort else row.partition
        return self.device.stage(reference, partition, row.silent, variants=row.variants)

    @property
    def processors(self) -> tuple[Processor, ...]:
        """The processors that the system uses: of those that the scenario names, if it does."""
        row, scenario = self.system.queueing, self.scenario
        if row is None:
            return self.device.two()
        found = self.device.list() if row.together else self.device.alone()
        if "processors" not in scenario.model_fields_set:
            return found
        return tuple(each for each in found if each.id in scenario.processors)

    @cached_property
    def lone_ns(self) -> dict[str, float]:
        """What each model takes alone, whole, where that is fastest; as the scenario means it."""
        noise = self._noise()
        found = {}
        for name in self.scenario.models:
            stage = self.device.stage(self.scenario.reference(name), "whole")
            spreads = [noise[processor] for processor, _ in stage.on]
            factor = _p99(max(spreads)) if self.scenario.lone == "p99" else 1.0
            found[name] = alone_ns(stage) * factor
        return found

    @property
    def references(self) -> dict[str, str]:
        """By model, its network."""
        return {name: self.scenario.reference(name) for name in self.scenario.models}

    @property
    def policy(self) -> str | Scheduler:
        """The system's policy. One that gives each model a processor for good has the mapping by
        which a round of the closed loops takes least; without loops, each model its fastest. One
        whose choices are made before anything runs is searched for."""
        row, numbers = self.system.queueing, numbers_a_round(self.scenario)
        if row is not None and row.searched:
            return self._searched
        if row is not None and row.together:
            if not isinstance(self.device, TogetherDevice):
                raise ConfigError(
                    f"device {self.device.name!r} runs one operator at a time: {self.system.name} "
                    "needs one whose profile has a table [together]"
                )
            return policies.made(
                self.system.name, self.device, self.references, self.scenario.actor
            )
        if row is None or not row.mapped or not numbers:
            return self.system.scheduler or ""
        lanes = {each.id: each.lanes for each in self.processors}
        times = {
            name: {id: ns for id, ns in _times(self.stages[name]).items() if id in lanes}
            for name in numbers
        }
        return Fixed(balanced(times, numbers, lanes))

    @cached_property
    def _searched(self) -> Scheduler:
        """What is chosen before anything runs, from profiles and nominal rates: or, where the
        simulator is asked, from short runs with chances of their own."""
        assert self.system.queueing is not None
        plans = {name: self._plan(name, stage) for name, stage in self.stages.items()}
        rates = {name: self.scenario.rate_hz(name) for name in plans}
        predict = {
            "forest": lambda: by_misses(plans, rates, MissForest()),
            "analysis": lambda: by_misses(plans, rates, late_share),
            "runs": lambda: lambda strategy: self._accuracy_of(strategy.policy()),
        }[self.system.queueing.searched]()
        return search(plans, predict).policy()

    def _accuracy_of(self, policy: Scheduler) -> float:
        """The accuracy of a short run with chances of its own; the share of deadlines that are met,
        without exits."""
        scenario = self.scenario.ending_after(_SEARCH_S)
        run = self._begin(Traffic(scenario, _SEARCH_SEED), _SEARCH_SEED, (), policy)
        run.run()
        outcomes = self._outcomes(run)
        found = accuracy(outcomes)
        return 1 - (violations(outcomes, {})[SLO] or 0) if found is None else found

    @property
    def admission(self) -> str:
        """Whether clients ask while the last answer is still to come."""
        row = self.system.queueing
        loops = any(self.scenario.loop_of(name) for name in self.scenario.models)
        return "queue(1)" if row is not None and row.busy_skips and not loops else "all"

    def begin(self, seed: int, tracer: Tracer | None = None) -> Requested:
        """A run that has not begun. Raises ConfigError where the system makes no sense."""
        observers = [] if tracer is None else [_recorder(tracer)]
        return self._begin(Traffic(self.scenario, seed), seed, observers)

    def begin_with(self, policy: Scheduler, seed: int, observers: Sequence[Observer]) -> Requested:
        """Begin a run under this policy, which was not asked yet."""
        return self._begin(Traffic(self.scenario, seed), seed, observers, policy)

    def run(self, seed: int, trace: Path | None = None) -> dict[str, Any]:
        """The summary of a run with these chances; its timeline goes to ``trace``."""
        tracer = Tracer(0) if trace is not None else None
        began_s = time.perf_counter()
        traffic = Traffic(self.scenario, seed)
        observers: list[Observer] = [] if tracer is None else [_recorder(tracer)]
        watched: Watched | None = None
        if isinstance(self.device, TogetherDevice):
            watched = Watched(self.device, self.references)
            observers.append(watched)
        run = self._begin(traffic, seed, observers)
        run.run(None if self.scenario.drain else self._end_ns)
        ran_s = time.perf_counter() - began_s
        if tracer is not None and trace is not None:
            about = {"scenario": self.scenario.name, "device": self.device.name}
            tracer.save(trace, run.config(), {**about, "system": self.system.name})
        return {
            **self._summary(run, traffic),
            **({"together": watched.figures(run.now_ns / 1e9)} if watched else {}),
            "seed": seed,
            "times_real_time": round(run.now_ns / 1e9 / ran_s, 1),
            "wall_s": round(ran_s, 3),
        }

    @property
    def _end_ns(self) -> int:
        """When it ends that does not wait for what waits."""
        return round((self.scenario.seconds or 0.0) * 1e9)

    def _begin(
        self,
        traffic: Traffic,
        seed: int,
        observers: Sequence[Observer],
        policy: Scheduler | None = None,
    ) -> Requested:
        models = models_of(self.scenario, self.stages, self.lone_ns, traffic)
        if self.machine is not None:
            follow = following(traffic)
            return UncoordinatedRequests(models, self.machine, self.system, seed, follow)
        away = [
            (each.processor, round(each.from_s * 1e9), round((each.from_s + each.for_s) * 1e9))
            for each in self.scenario.away
        ]
        system = self.system

        return RequestSimulation(
            models,
            self.processors,
            policy or self.policy,
            seed=seed,
            noise=self._noise(),
            estimates=self.values.get("estimates", 0.0),
            away=away,
            mode=system.mode,
            admission=self.admission,
            follow=following(traffic),
            observe=_to_all(observers) if observers else None,
            together=self._together if isinstance(self.device, TogetherDevice) else None,
        )

    def _together(self, action: RunTogether) -> int:
        assert isinstance(self.device, TogetherDevice)
        return round(self.device.took(action, self.references).ns)

    def _plan(self, name: str, stage: StagePlan) -> DnnPlan:
        return _plan_of(self.scenario, name, stage, self.lone_ns)

    def _noise(self) -> dict[str, float]:
        noise = self.values.get("noise")
        return {id: each if noise is None else noise for id, each in self.device.noise().items()}

    def _outcomes(self, run: Requested) -> list[Answered]:
        return outcomes_of(self.scenario, run.answered, self.lone_ns)

    def _summary(self, run: Requested, traffic: Traffic) -> dict[str, Any]:
        outcomes = self._outcomes(run)
        ends_ns = [each.finished_ns for each in outcomes if each.finished_ns is not None]
        ended_ns = max(ends_ns, default=run.now_ns) if self.scenario.drain else self._end_ns
        seconds = ended_ns / 1e9
        lanes = {each.id: each.lanes for each in self.device.alone()}
        return {
            "schema": SCHEMA,
            "simulated": True,
            "scenario": self.scenario.name,
            "system": self.system.name,
            "scheduler": self.system.policy or self.system.name,
            "device": _about(self.device),
            "seconds": round(seconds, 3),
            **answers(self.scenario, outcomes, self.lone_ns, seconds),
            "processors": processor_figures(run.busy_ns, lanes, seconds),
            **({"frames": traffic.frame_figures()} if traffic.frames_ns else {}),
            "errors": run.errors,
        }


def prepare_requests(
    scenario: Scenario,
    device: str | None,
    system: System,
    *,
    seconds: float | None = None,
    variations: Mapping[str, Any] | None = None,
) -> RequestExperiment:
    """What is simulated (see ``simulate``). ``device``: None for the scenario's own; ``seconds``:
    when requests stop to come, instead of what the scenario says; ``variations``: see
    ``vary_requests``.

    Raises ConfigError for a system that has no queue of requests and a device that cannot run
    them.
    """
    scenario.check_asks()
    check_number("seconds", seconds, above=0, most=LONGEST_S)
    device = device or scenario.device
    if device is None:
        raise ConfigError(f"scenario {scenario.name!r} names no device: choose one (--device)")
    if seconds is not None:
        scenario = scenario.ending_after(seconds)
    values = dict(variations or {})
    scenario = vary_requests(scenario, values)
    machine = None if system.coordinated else _machine(device, system)
    found = load_device_for_requests(device)
    experiment = RequestExperiment(scenario, found, system, values, machine)
    _check_away(experiment)
    return experiment


def _machine(device: str, system: System) -> Machine:
    """A phone, of which it is known how its driver takes turns. Raises ConfigError for others."""
    if not is_phone(device):
        raise ConfigError(
            f"{system.name} has no queue of requests, and how the driver of {device!r} takes turns "
            f"is not known: choose one of {', '.join(queue_names())}, or a policy of Heimdall's"
        )
    return load_device(device).machine(App.size)


def _times(stage: StagePlan) -> dict[str, int]:
    """What a whole network takes on each processor that supports it."""
    costs, ops = StageCosts(stage), len(stage.op_ns)
    found = {processor: costs.on_ns(processor, 0, ops) for processor, _ in stage.on}
    return {processor: ns for processor, ns in found.items() if ns is not None}


# --- parts of a summary ---------------------------------------------------------------------------


def answers(
    scenario: Scenario,
    outcomes: Sequence[Answered],
    lone_ns: Mapping[str, float],
    seconds: float,
) -> dict[str, Any]:
    """What a summary says of requests."""
    return {
        "requests": request_figures(outcomes, lone_ns),
        "violations": violations(outcomes, lone_ns),
        "accuracy": accuracy(outcomes),
        "score": score(outcomes) if scenario.drop_late else None,
        "throughput_hz": throughput_hz(outcomes, seconds),
    }


def following(traffic: Traffic) -> Follow:
    """What comes of answers."""

    return traffic.come_of


def models_of(
    scenario: Scenario,
    stages: Mapping[str, StagePlan],
    lone_ns: Mapping[str, float],
    traffic: Traffic,
) -> list[SimulatedModel]:
    """A scenario's models with these networks, and when each is asked for."""
    arrivals = traffic.arrivals_ns()
    return [
        SimulatedModel(
            _plan_of(scenario, name, stage, lone_ns),
            arrivals[name],
            partial(traffic.slo_ns, name),
        )
        for name, stage in stages.items()
    ]


def outcomes_of(
    scenario: Scenario, answered: Sequence[Answered], lone_ns: Mapping[str, float]
) -> list[Answered]:
    """What became of requests, by the SLOs of their models; None where there is none."""
    models = scenario.models
    slos = {name: each.slo_ns(lone_ns[name]) for name, each in models.items()}
    return [
        each if models[each.model].deadline else replace(each, slo_ns=slos[each.model])
        for each in answered
    ]


def _plan_of(
    scenario: Scenario, name: str, stage: StagePlan, lone_ns: Mapping[str, float]
) -> DnnPlan:
    settings = scenario.models[name]
    slo_ns = scenario.slo_ns(name, lone_ns[name]) or NO_SLO_NS
    return DnnPlan(
        name,
        (stage,),
        slo_ns,
        utility=utility_for(settings.priority, slo_ns / _NS_PER_MS),
        continuous=False,
        priority=settings.priority,
        queued=True,
        expires=scenario.drop_late,
    )


def _check_away(experiment: RequestExperiment) -> None:
    names = [each.id for each in experiment.device.list()]
    for each in experiment.scenario.away:
        if each.processor not in names:
            raise ConfigError(
                f"scenario {experiment.scenario.name!r}: away: "
                f"{unknown('processor', each.processor, names)}"
            )


def _about(device: SeveralDevice) -> dict[str, Any]:
    """The device as run summaries have it."""
    kinds: dict[str, list[str]] = {ProcessorKind.GPU: [], ProcessorKind.CPU: []}
    for each in device.processors.values():
        kinds.setdefault(each.kind, []).append(each.name)
    return {
        "gpu": ", ".join(kinds[ProcessorKind.GPU]) or "none",
        "cpu": ", ".join(kinds[ProcessorKind.CPU]) or "none",
        "software_gpu": False,
        "mode": f"simulated {device.name}",
        "renderer": None,
    }


def _to_all(observers: Sequence[Observer]) -> Observer:
    def observe(now_ns: int, event: Event | None, actions: Sequence[Action]) -> None:
        for each in observers:
            each(now_ns, event, actions)

    return observe


def _p99(spread: float) -> float:
    """How much longer than usual the slowest hundredth takes with such noise."""
    noise = noise_source(random.Random(0), spread)
    return float(np.percentile([noise() for _ in range(_DRAWS)], 99)) if spread else 1.0


def _recorder(tracer: Tracer) -> Observer:
    """Records steps, and each range that has run as a piece of work."""
    dnns: dict[int, str] = {}

    def observe(now_ns: int, event: Event | None, actions: Sequence[Action]) -> None:
        tracer.step(now_ns, event, actions)
        if isinstance(event, ChunkFinished):
            details = {"ops": f"{event.start_op}-{event.end_op}", "job": event.job}
            began_ns = now_ns - event.elapsed_ns
            tracer.span(event.processor, dnns[event.job], began_ns, now_ns, details)
        for action in actions:
            if isinstance(action, RunChunk):
                dnns[action.job] = action.dnn
            elif isinstance(action, RunTogether):
                dnns.update((each.job, each.dnn) for groups in action.stages for each in groups)

    return observe
