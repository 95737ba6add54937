"""A scenario on a device under a system: seconds of virtual time, and the summary of a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import check_number
from heimdall.errors import ArgumentError, ConfigError
from heimdall.lab.bench.alone import too_slow_alone
from heimdall.lab.bench.scenario import Scenario, load_scenario
from heimdall.lab.bench.score import score
from heimdall.lab.bench.systems import System, parse_system, refuse_planned
from heimdall.lab.bench.traffic import Traffic
from heimdall.lab.simulator.clients import WAITED
from heimdall.lab.simulator.coordinated import CoordinatedRun
from heimdall.lab.simulator.device import Device, load_device, phone_names
from heimdall.lab.simulator.devices import HERE, open_device
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.phones import is_phone
from heimdall.lab.simulator.recorded import RECORDED, recorded_machine
from heimdall.lab.simulator.request_variations import vary_requests
from heimdall.lab.simulator.run import SimulatedRun
from heimdall.lab.simulator.serving import (
    RequestExperiment,
    answers,
    following,
    models_of,
    outcomes_of,
    prepare_requests,
)
from heimdall.lab.simulator.uncoordinated import UncoordinatedRun
from heimdall.lab.simulator.variations import VARIATIONS, vary
from heimdall.runtime.telemetry.figures import SCHEMA
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.plans import StagePlan

log = logging.getLogger(__name__)

LONGEST_S = 86_400.0
# Of a scenario that draws, where nothing else is asked for.
DEVICE, SYSTEM, LENGTH_S = "lg-v50", "max-total", 60.0


def simulate(
    scenario: Scenario | str,
    device: str | None,
    system: str | None,
    *,
    seconds: float | None = None,
    seed: int = 0,
    render_ms: float | None = None,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
    variations: Mapping[str, Any] | None = None,
    trace: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The run summary of ``seconds`` after warm-up (None: a minute), with ``"simulated": true``.

    ``scenario`` is one, its name or its file. ``device``: a phone's or a measured machine's name
    or file, "here", or the trace of a run, for the machine it ran on. ``render_ms`` replaces the
    render latency, ``fps`` and ``size`` those of the scenario; ``variations``: other figures of the
    machine (``variations.vary``). None for ``device`` and ``system``: those of ``DEVICE`` and
    ``SYSTEM``.

    A scenario of requests runs on its own device under its own system, as long as it says, where
    those are None, and has other ``variations`` (``request_variations``) and no rendering.
    The same seed gives the same summary (but ``wall_s`` and ``times_real_time``). ``trace`` is
    the file for the timeline. Raises HeimdallError for names that are not known, and for values
    out of range.
    """
    began_s = time.perf_counter()
    experiment = prepare_any(
        scenario,
        device,
        system,
        seconds=seconds,
        render_ms=render_ms,
        fps=fps,
        size=size,
        variations=variations,
        progress=progress,
    )
    experiment.warn()
    return {**experiment.run(seed, trace), "wall_s": round(time.perf_counter() - began_s, 3)}


@dataclass(frozen=True)
class Experiment:
    """A scenario on a machine under a system: all of a simulation but its chances. ``values``:
    what was varied; ``models``: the networks that are asked for beside frames, by model."""

    scenario: Scenario
    machine: Machine
    dnns: tuple[SimulatedDnn, ...]
    system: System
    seconds: float
    values: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, StagePlan] = field(default_factory=dict)

    def warn(self) -> None:
        """Name every DNN that is too slow even alone."""
        render_ms = self.machine.render_ns / 1e6
        for dnn in self.dnns:
            if why := too_slow_alone(dnn.plan, fps=self.scenario.fps, render_ms=render_ms):
                log.warning("%s", why)

    def begin(self, seed: int, tracer: Tracer | None = None) -> SimulatedRun:
        """A run that has not begun. Raises ConfigError where the system makes no sense."""
        beside: dict[str, Any] = {}
        if self.models:
            traffic = Traffic(self.scenario, seed)
            models = models_of(self.scenario, self.models, self.lone_ns, traffic)
            beside = {"models": models, "follow": following(traffic)}
        return simulated_run(
            self.dnns,
            self.machine,
            self.system,
            fps=self.scenario.fps,
            seed=seed,
            tracer=tracer,
            **beside,
        )

    @property
    def lone_ns(self) -> dict[str, float]:
        """What each model takes alone, whole, where that is fastest."""
        return {name: StageCosts(stage).lone_ns for name, stage in self.models.items()}

    def run(self, seed: int, trace: Path | None = None) -> dict[str, Any]:
        """The summary of a run with these chances; its timeline goes to ``trace``."""
        tracer = Tracer(0) if trace is not None else None
        run = self.begin(seed, tracer)
        began_s = time.perf_counter()
        run.run(self.seconds)
        ran_s = time.perf_counter() - began_s
        if tracer is not None and trace is not None:
            about = {"app": self.scenario.name, "device": self.machine.name}
            tracer.save(trace, run.config(), {**about, "system": self.system.name})
        return {
            **summary(run, self.scenario, self.system),
            **self._answers(run),
            "seed": seed,
            "times_real_time": round(run.now_ns / 1e9 / ran_s, 1),
            "wall_s": round(ran_s, 3),
        }

    def _answers(self, run: SimulatedRun) -> dict[str, Any]:
        """What became of requests, where there are any."""
        if not self.models:
            return {}
        assert isinstance(run, CoordinatedRun | UncoordinatedRun)
        run.requests.end()
        lone_ns = self.lone_ns
        outcomes = outcomes_of(self.scenario, run.requests.answered, lone_ns)
        found = answers(self.scenario, outcomes, lone_ns, self.seconds)
        if self.scenario.drop_late:  # frames that are not over are neither met nor missed
            found["score"] = score([each for each in outcomes if each.reason != WAITED])
        return found


def prepare_any(
    scenario: Scenario | str,
    device: str | None,
    system: str | None,
    **options: Any,
) -> Experiment | RequestExperiment:
    """What ``simulate`` runs, with the same arguments. Raises as that does."""
    asked = None if system is None else parse_system(system)
    if isinstance(scenario, str):
        scenario = load_scenario(scenario)
    scenario = scenario.drawing(options.pop("fps", None), options.pop("size", None))
    if scenario.draws:
        own = scenario.system if "system" in scenario.model_fields_set else SYSTEM
        return prepare(scenario, device or scenario.device or DEVICE, system or own, **options)
    if (value := options.pop("render_ms", None)) is not None:
        problem = f"scenario {scenario.name!r} draws nothing: leave it out, or give fps"
        raise ArgumentError(problem, argument="render_ms", value=value)
    options.pop("progress", None)
    return prepare_requests(scenario, device, asked or parse_system(scenario.system), **options)


def prepare(
    scenario: Scenario | str,
    device: str,
    system: str,
    *,
    seconds: float | None = None,
    render_ms: float | None = None,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
    variations: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> Experiment:
    """``prepare_any`` for a scenario that draws, whether it has requests too or not: those come
    from when figures count, and have waited in vain when these end."""
    check_number("seconds", seconds, above=0, most=LONGEST_S)
    check_number("render_ms", render_ms, least=0)
    asked = parse_system(system)
    if isinstance(scenario, str):
        scenario = load_scenario(scenario)
    scenario.check_draws()
    scenario = scenario.drawing(fps, size)
    values = dict(variations or {})
    if scenario.throttle is not None:
        values = {"throttle": (scenario.throttle.after_s, scenario.throttle.factor), **values}
    length_s, machine_values = seconds or scenario.seconds or LENGTH_S, values
    if scenario.models:
        machine_values, of_requests = _apart(values)
        scenario = scenario if seconds is None else scenario.ending_after(seconds)
        scenario = vary_requests(scenario, of_requests)
    phone = _phone(scenario, device) if scenario.models else None
    machine, dnns = vary(*open_machine(scenario, device, render_ms, progress), machine_values)
    gap_ns = round(1e9 / scenario.fps) - machine.render_ns
    models = {}
    if phone is not None:
        models = {name: phone.stage(scenario.reference(name), gap_ns) for name in scenario.models}
    return Experiment(scenario, machine, tuple(dnns), asked, length_s, values, models)


def _apart(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is varied of a machine, and what of requests."""
    for name in ("noise", "estimates"):
        if name in values:
            raise ConfigError(f"{name}: of devices for requests; beside frames vary gpu_noise")
    of_machine = {name: value for name, value in values.items() if name in VARIATIONS}
    return of_machine, {name: each for name, each in values.items() if name not in of_machine}


def _phone(scenario: Scenario, device: str) -> Device:
    """The device, if models can be asked for there beside frames: of them no more is known than
    what their networks take. Raises ConfigError where they cannot."""
    asked = {"away": scenario.away, "lone": scenario.lone != "mean", "actor": scenario.actor}
    for key, given in asked.items():
        if given:
            raise ConfigError(
                f"scenario {scenario.name!r}: {key}: is not simulated beside frames: leave it out"
            )
    if not is_phone(device):
        raise ConfigError(
            f"scenario {scenario.name!r} has requests beside frames: it is simulated on a phone's "
            f"profile ({', '.join(phone_names())}), not on {device!r}"
        )
    return load_device(device)


def open_machine(
    scenario: Scenario,
    device: str,
    render_ms: float | None = None,
    progress: Progress = no_progress,
) -> tuple[Machine, list[SimulatedDnn]]:
    """The device and the scenario's DNNs on it."""
    if device == HERE:
        from heimdall.lab.simulator.here import (
            measure_here,  # opens the GPU: not for a phone's sake
        )

        return measure_here(scenario, render_ms, progress)
    if device.endswith(RECORDED):
        return recorded_machine(scenario, device, render_ms)
    return open_device(scenario, device, render_ms)


def simulated_run(
    dnns: Sequence[SimulatedDnn],
    machine: Machine,
    system: System,
    *,
    fps: float,
    seed: int = 0,
    tracer: Tracer | None = None,
    **beside: Any,
) -> SimulatedRun:
    """A run that has not begun; ``beside``: its requests (see ``CoordinatedRun``). Raises
    ConfigError where the system makes no sense."""
    refuse_planned(system)
    sharing = system.sharing
    if sharing and sharing.low:
        raise ConfigError(
            f"{system.name} cannot be simulated: when a driver lets rendering preempt networks is "
            "not known; run it (heimdall bench), where the driver has priorities"
        )
    if sharing and not sharing.on_gpu and machine.software_gpu:
        raise ConfigError(
            f"{system.name} cannot be simulated on {machine.name!r}: its GPU is made of the cores "
            "that onnxruntime would take; run it (heimdall bench)"
        )
    if sharing and not sharing.batch_ns and not machine.batch_ns:
        raise ConfigError(
            f"{system.name} cannot be simulated on {machine.name!r}: how its driver takes turns is "
            "not known; run it (heimdall bench)"
        )
    if machine.cpu_workers > machine.cores:
        raise ConfigError(
            f"{machine.cpu_workers} workers of the CPU need a core each: {machine.name!r} has "
            f"{machine.cores}"
        )
    kind = CoordinatedRun if sharing is None else UncoordinatedRun
    return kind(dnns, machine, system, fps=fps, seed=seed, tracer=tracer, **beside)


def summary(run: SimulatedRun, scenario: Scenario, system: System) -> dict[str, Any]:
    """What a live run's summary holds, and ``simulated``, ``scenario`` and ``system``."""
    machine = run.machine
    figures = run.figures.summary(machine.render_ns, run.gap_utilization(), run.now_ns)
    return {
        "schema": SCHEMA,
        "simulated": True,
        "scenario": scenario.name,
        "system": system.name,
        "app": scenario.app or scenario.name,
        "startup_s": 0.0,
        "ready_s": 0.0,
        "source": f"scenario {scenario.name} ({scenario.title})",
        "scheduler": system.policy or system.name,
        "mode": system.mode if system.coordinated else "uncoordinated",
        "device": {
            "gpu": machine.gpu,
            "cpu": machine.cpu,
            "software_gpu": machine.software_gpu,
            "mode": f"simulated {machine.name}",
            "renderer": machine.gpu,
        },
        "size": list(scenario.size),
        **figures,
        "gpu": {**figures["gpu"], "busy_ms": round(run.gpu_busy_ns / 1e6, 1)},
        "cpu_core_s": round(run.cpu_core_s, 3),
        **({"windows": run.windows.summary()} if machine.throttle is not None else {}),
        "errors": run.errors,
        "given_up": [],
        "outputs": {},
    }
