"""Requests, live: clients of this machine's models, in a session of their own or beside an app.

A model needs a file: one that the scenario names, or that is given for it. Those without are left
out, and what is asked for after them. The others' streams are so much faster or slower than the
scenario says that they take the share of the machine that it says (``load``), where it says one.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import check_number
from heimdall.errors import ConfigError, unknown
from heimdall.graph.onnx_file import Inputs
from heimdall.lab.bench import model_threads
from heimdall.lab.bench.clients import Clients
from heimdall.lab.bench.energy import EnergyMeter, inference_mj
from heimdall.lab.bench.model_threads import ThreadedModel
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.score import Score, score
from heimdall.lab.bench.settings import LONGEST_S
from heimdall.lab.bench.standin import is_standin, standin_path
from heimdall.lab.bench.systems import System
from heimdall.lab.bench.traffic import Traffic
from heimdall.runtime.session.models import Model, exits_in, inputs_by_model
from heimdall.runtime.session.session import Session
from heimdall.runtime.telemetry.figures import SCHEMA
from heimdall.runtime.telemetry.jobs import Outcome, request_figures, throughput_hz, violations
from heimdall.schedulers import Scheduler, create
from heimdall.vocabulary.processors import CPU

log = logging.getLogger(__name__)

NO_SLO_MS = 3_600_000.0  # where there is none: nothing waits for an hour
WARM_UP, LONE_RUNS, LONE_TURNS = 3, 7, 3
_ALONE = "fcfs"  # what a model alone is measured under: whole

Options = Mapping[str, Any]  # of a Session
Tensors = Mapping[str, "np.ndarray[Any, Any]"]
Register = Callable[..., Model | ThreadedModel]  # see ``Session.register``


@dataclass(frozen=True)
class Runs:
    """How a comparison makes its runs: ``run`` makes one under a system and returns its summary;
    ``tell`` of each run."""

    run: Callable[[System], dict[str, Any]]
    tell: Progress = no_progress


@contextlib.contextmanager
def request_runs(
    scenario: str,
    workload: Scenario,
    systems: Sequence[System],
    *,
    runs: int,
    traces: Mapping[str, Path],
    progress: Progress,
    seconds: float | None = None,
    files: Mapping[str, Path] | None = None,
    shapes: Inputs | None = None,
    processors: Sequence[str] | None = None,
    **options: Any,
) -> Iterator[Runs]:
    """The runs of a scenario of requests, in this process. ``files``: of models, instead of the
    scenario's; ``shapes`` fixes their inputs, by ``MODEL:INPUT``; ``processors``: what requests run
    on, such as ("gpu", "cpu") (None: as the scenario says); ``seconds``: when requests stop to
    come, instead of what it says; other ``options`` are a session's. Every system has the same
    trace in a turn; the turns differ. There are no timelines. Raises ConfigError when a value is
    wrong."""
    check_number("seconds", seconds, above=0, most=LONGEST_S)
    if seconds is not None:
        workload = workload.ending_after(seconds)
    how = {"processors": tuple(processors or workload.processors), "process": True, **options}
    asked = Asked(workload, files or {}, how, shapes)
    turns = dict.fromkeys((each.name for each in systems), 0)

    def run(system: System) -> dict[str, Any]:
        seed, turns[system.name] = turns[system.name], turns[system.name] + 1
        summary = run_requests(asked, system, how, seed)
        gc.collect()
        return summary

    yield Runs(run, progress)


class Asked:
    """The models of a scenario that have files, and their clients: what each takes alone here
    (``lone_ns``), and their streams at their load, so many times as fast (``faster``).

    Measuring opens a session with these options. ``shapes`` fixes inputs, by ``MODEL:INPUT``.
    Raises ConfigError as ``with_files`` and ``inputs_by_model`` do, HeimdallError where a session
    cannot start, and ModelError for a file that cannot be run.
    """

    def __init__(
        self,
        scenario: Scenario,
        given: Mapping[str, Path],
        options: Options,
        shapes: Inputs | None = None,
    ) -> None:
        self._shapes = inputs_by_model(shapes or {}, scenario.models)
        if scenario.away:
            log.warning("no processor is taken away here: that is for heimdall simulate")
        scenario, self._files = with_files(scenario, given)
        self.lone_ns = self._measured(scenario, options)
        gc.collect()  # sessions refer to themselves, and to networks: gigabytes in VGG-19's case
        self.scenario, self.faster = at_load(scenario, self.lone_ns)

    def _measured(self, scenario: Scenario, options: Options) -> dict[str, float]:
        """What each model takes alone, whole, in ns, as the scenario means it."""
        with Session(scheduler=_ALONE, **options) as session:
            models = {
                name: session.register(file, NO_SLO_MS, name=name, shapes=self._shapes.get(name))
                for name, file in self._files.items()
            }
            times: dict[str, list[int]] = {name: [] for name in models}
            for _ in range(LONE_TURNS):  # so that a slow moment of the machine is not one model's
                for name, model in models.items():
                    times[name] += _alone_ns(model)
        if scenario.lone == "p99":
            return {name: float(np.percentile(each, 99)) for name, each in times.items()}
        return {name: float(np.mean(each)) for name, each in times.items()}

    def score(self, outcomes: Sequence[Outcome], joules: float | None) -> Score | None:
        """XRBench's, of a scenario with its rule; ``joules``: what was used meanwhile."""
        if not self.scenario.drop_late:
            return None
        finished = Counter(each.model for each in outcomes if each.finished_ns is not None)
        return score(outcomes, inference_mj(joules, finished, self.lone_ns))

    @contextlib.contextmanager
    def clients(self, register: Register, seed: int = 0) -> Iterator[Clients]:
        """The models registered, and clients that ask for them until the block ends."""
        settings = self.scenario.models
        slos_ns = {name: self.scenario.slo_ns(name, self.lone_ns[name]) for name in self._files}
        models = {
            name: register(
                file,
                NO_SLO_MS if (slo_ns := slos_ns[name]) is None else slo_ns / 1e6,
                name=name,
                shapes=self._shapes.get(name),
                priority=settings[name].priority,
                expires=self.scenario.drop_late,
            )
            for name, file in self._files.items()
        }
        submits = {name: partial(model.submit, inputs_of(model)) for name, model in models.items()}
        for model in models.values():
            model.run(inputs_of(model), NO_SLO_MS)  # a first run may take long
        exits = {name: exits_in(each) for name, each in models.items() if isinstance(each, Model)}
        clients = Clients(Traffic(self.scenario, seed), submits, slos_ns, exits=exits)
        clients.start()
        try:
            yield clients
        finally:
            clients.stop()
        clients.check()


def run_requests(asked: Asked, system: System, options: Options, seed: int = 0) -> dict[str, Any]:
    """The summary of requests alone under a system, as ``simulate`` has it.

    Raises HeimdallError when it cannot start.
    """
    entered_s = time.perf_counter()
    run = _by_threads if system.sharing is not None else _by_session
    outcomes, found, joules = run(asked, system, options, seed)
    lone_ns, preempted = asked.lone_ns, found.pop("preempted")
    ends_ns = [each.finished_ns for each in outcomes if each.finished_ns is not None]
    seconds = max(ends_ns, default=0) / 1e9
    requests = request_figures(outcomes, lone_ns)
    for name, each in requests.items():  # which clients cannot know
        each["preempted"] = preempted.get(name, 0)
    return {
        "schema": SCHEMA,
        "scenario": asked.scenario.name,
        "system": system.name,
        "scheduler": system.policy or system.name,
        "seconds": round(seconds, 3),
        "requests": requests,
        "violations": violations(outcomes, lone_ns),
        "score": asked.score(outcomes, joules),
        "throughput_hz": throughput_hz(outcomes, seconds),
        **found,
        "seed": seed,
        "wall_s": round(time.perf_counter() - entered_s, 3),
        "faster": round(asked.faster, 4),
    }


# What clients saw, what is told of the run beside that, and the energy it took in J, if known.
_Ran = tuple[Sequence[Outcome], dict[str, Any], float | None]


def _by_session(asked: Asked, system: System, options: Options, seed: int) -> _Ran:
    """Under a coordinator."""
    how: dict[str, Any] = {"scheduler": policy_of(system), "mode": system.mode}
    how["offload"] = system.offload and CPU in options.get("processors", (CPU,))
    loops = any(map(asked.scenario.loop_of, asked.scenario.models))
    if system.queueing is not None and system.queueing.busy_skips and not loops:
        how["admission"] = "queue(1)"
    with Session(**how, **options) as session, asked.clients(session.register, seed) as clients:
        meter = EnergyMeter()
        session.serve(clients.over)
        joules, figures = meter.joules(), session.summary()
    found = {
        "device": asdict(figures.device),
        "processors": {name: asdict(each) for name, each in figures.processors.items()},
        **clients.rounds(),
        "decision_us": asdict(figures.decision_us),
        "errors": figures.errors,
        "preempted": {name: each.preempted for name, each in figures.requests.items()},
    }
    return clients.outcomes, found, joules


def _by_threads(asked: Asked, system: System, options: Options, seed: int) -> _Ran:
    """Under a baseline: it decides nothing, and nobody counts what processors do."""
    with (
        model_threads.opened(system, options) as (threads, setup),
        asked.clients(threads.register, seed) as clients,
    ):
        meter = EnergyMeter()
        clients.over.wait()
        joules, device = meter.joules(), setup.describe_devices()
    found = {
        "device": device,
        "processors": {},
        **clients.rounds(),
        "decision_us": {"p50": None, "p99": None},
        "errors": [],
        "preempted": {},
    }
    return clients.outcomes, found, joules


def with_files(scenario: Scenario, given: Mapping[str, Path]) -> tuple[Scenario, dict[str, Path]]:
    """The scenario without models that have no file, and the others' files.

    Raises ConfigError for a file that is not there, a given model that the scenario does not have,
    and where nothing is left.
    """
    for name in given:
        if name not in scenario.models:
            raise ConfigError(unknown("model", name, scenario.models))
    files = {name: file for name in scenario.models if (file := _file(scenario, name, given))}
    kept = [
        name for name in scenario.models if all(each in files for each in scenario.before(name))
    ]
    if not kept:
        raise ConfigError(
            f"scenario {scenario.name!r}: no model has a file: give model = FILE in the scenario, "
            "or --model NAME=FILE"
        )
    if left_out := [name for name in scenario.models if name not in kept]:
        log.warning("left out, without a model file: %s", ", ".join(left_out))
    models = {name: scenario.models[name] for name in kept}
    return scenario.model_copy(update={"models": models}), {name: files[name] for name in kept}


def _file(scenario: Scenario, name: str, given: Mapping[str, Path]) -> Path | None:
    said = given.get(name) or scenario.models[name].model
    if said is None:
        return None
    return standin_path(str(said)) if is_standin(str(said)) else Path(said)


def at_load(scenario: Scenario, lone_ns: Mapping[str, float]) -> tuple[Scenario, float]:
    """The scenario at its load, where it says one, and how many times as fast its streams are."""
    offered = scenario.offered({name: ns / 1e9 for name, ns in lone_ns.items()})
    if scenario.load is None or not offered:
        return scenario, 1.0
    return scenario.faster(scenario.load / offered), scenario.load / offered


def policy_of(system: System) -> str | Scheduler:
    """The system's policy, which has networks cut as its row says."""
    row = system.queueing
    policy = create(system.scheduler or "")
    if row is not None:
        policy.partition = row.partition
    return policy


def inputs_of(model: Model | ThreadedModel) -> Tensors:
    """Tensors that it takes: noise, for zeros may cost less than a picture."""
    draw = np.random.default_rng(0)
    return {each.name: draw.random(each.shape).astype(each.dtype) for each in model.inputs}


def _alone_ns(model: Model) -> list[int]:
    inputs, times = inputs_of(model), []
    for _ in range(WARM_UP + LONE_RUNS):
        began_ns = time.perf_counter_ns()
        model.run(inputs)
        times.append(time.perf_counter_ns() - began_ns)
    return times[WARM_UP:]
