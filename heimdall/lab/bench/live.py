"""Live runs of an app on this machine, each under one system; clients may ask for models beside."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import create
from heimdall.app.options import RunOptions
from heimdall.errors import ArgumentError
from heimdall.graph.onnx_file import Inputs
from heimdall.lab.bench.alone import measure_useful, too_slow_alone
from heimdall.lab.bench.apart import OwnProcess
from heimdall.lab.bench.energy import EnergyMeter
from heimdall.lab.bench.live_requests import Asked, Register, Runs
from heimdall.lab.bench.loads import fit
from heimdall.lab.bench.model_threads import ModelThreads
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.systems import System
from heimdall.lab.bench.uncoordinated import Uncoordinated, check_priorities
from heimdall.lab.bench.workload import as_app
from heimdall.runtime.loop.live import LiveRun
from heimdall.runtime.opening.setup import Setup, confinement
from heimdall.runtime.run import open_run
from heimdall.runtime.telemetry.display import STATUS_INTERVAL_NS
from heimdall.runtime.telemetry.jobs import Outcome, request_figures

log = logging.getLogger(__name__)


@contextlib.contextmanager
def app_runs(
    scenario: str,
    workload: Scenario,
    systems: Sequence[System],
    *,
    runs: int,
    traces: Mapping[str, Path],
    progress: Progress,
    seconds: float,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
    fallback: bool = True,
    trace: Path | None = None,
    files: Mapping[str, Path] | None = None,
    shapes: Inputs | None = None,
    processors: Sequence[str] | None = None,
    **limits: Any,
) -> Iterator[Runs]:
    """The runs of a scenario that draws, ``seconds`` each after its warm-up: a single one in this
    process, else each in one of its own. ``fallback`` False: no op is forced to the CPU; ``traces``
    are files for the timelines of first runs, by system, ``trace`` that of a single system;
    ``files``, ``shapes`` and ``processors``: see ``request_runs``; other ``limits`` are of
    ``RunOptions``. Raises ConfigError when a value is wrong."""
    if trace is not None and len(systems) > 1:
        problem = f"records one system, not {len(systems)}: name one, or ask for a report"
        raise ArgumentError(problem, argument="trace", value=trace)
    workload = workload.drawing(fps, size)
    workload.app_class()
    if not fallback:
        workload = workload.without_fallback()
    limits |= {"seconds": seconds, "fps": fps, "size": size}
    options = RunOptions(headless=True, processors=processors, **limits)
    confinement(options, process=True)
    first = {system.name: trace for system in systems} if trace is not None else dict(traces)

    def here(system: System) -> dict[str, Any]:
        policy: dict[str, Any] = {"mode": system.mode, "offload": system.offload}
        policy |= {"scheduler": system.scheduler, "admission": system.admission}
        own = replace(options, **policy, trace=first.get(system.name))
        return run_live(workload, system, own, progress, files=files, shapes=shapes)

    if len(systems) == runs == 1:
        yield Runs(here)
        return
    models = [f"{name}={file}" for name, file in (files or {}).items()]
    own = {**limits, "fallback": fallback, "model": models, **_flags(shapes or {})}
    own["processors"] = ",".join(processors) if processors else None
    apart = OwnProcess(scenario, own, lambda system: first.pop(system.name, None))
    yield Runs(apart, progress)


def _flags(shapes: Inputs) -> dict[str, list[str]]:
    """Shapes and numbers of inputs, as options of the command line."""
    found: dict[str, list[str]] = {"shape": [], "value": []}
    for name, each in shapes.items():
        if isinstance(each, int | float):
            found["value"].append(f"{name}={each}")
        else:
            found["shape"].append(f"{name}={'x'.join(map(str, each))}")
    return found


def run_live(
    scenario: Scenario,
    system: System,
    options: RunOptions,
    progress: Progress = no_progress,
    *,
    lone_times: bool = True,
    files: Mapping[str, Path] | None = None,
    shapes: Inputs | None = None,
) -> dict[str, Any]:
    """The run summary of ``scenario`` under ``system``; ``options`` say for how long, and on
    which device. Warns first of a DNN that cannot meet its latency constraint even alone.
    ``lone_times``: measure afterwards what a run's work takes alone, for ``useful_ms``.
    ``power_w`` is the processor's mean power over the run, its warm-up included, or None.
    ``loads``: of each DNN with ``alone_ms`` its input size, and what it takes alone. ``files`` and
    ``shapes``: of models that are asked for; see ``request_runs``.

    Raises HeimdallError when it cannot start.
    """
    entered_s = time.perf_counter()
    scenario, loads = fit(scenario, options, progress)
    asked = None
    if scenario.models:
        kept = ("device", "gpu_cores", "realtime", "gpu_policy", "processors")
        how = {"process": True, **{name: getattr(options, name) for name in kept}}
        asked = Asked(scenario, files or {}, how, shapes)
    app = create(as_app(scenario))
    baseline = None if system.coordinated else Uncoordinated(system)
    with open_run(app, options, progress, baseline) as run:
        check_priorities(system, run.setup)
        for warning in hopeless(run.setup):
            log.warning("%s", warning)
        meter = EnergyMeter()
        summary, outcomes = _until_finished(run, asked, system)
        power_w, joules = meter.watts(), meter.joules()
        run.halt()  # what is measured now has the GPU for itself
        if system.coordinated and lone_times:
            words = round(summary["seconds"] * 1e9 / STATUS_INTERVAL_NS)
            drawings = [(summary["frames"], run.redraw_ns), (words, run.reprint_ns)]
            summary["gpu"] |= measure_useful(summary, drawings, run.setup.deployments, progress)
    wall_s = round(time.perf_counter() - entered_s, 3)
    return {
        **summary,
        "system": system.name,
        "loads": {name: load.to_dict() for name, load in loads.items()},
        "power_w": power_w,
        **({"score": asked.score(outcomes, joules)} if asked else {}),
        "wall_s": wall_s,
    }


def _until_finished(
    run: LiveRun, asked: Asked | None, system: System
) -> tuple[dict[str, Any], Sequence[Outcome]]:
    """The summary of a run, with clients that ask until it is over, and what they saw, its warm-up
    included."""
    if asked is None:
        return run.until_finished(), ()
    if not system.coordinated:
        with contextlib.closing(ModelThreads(system, run.setup.processors)) as threads:
            summary, outcomes = _with_clients(run, asked, threads.register)
        return {**summary, "requests": request_figures(outcomes, asked.lone_ns)}, outcomes

    def wait(future: Future[Any], timeout_s: float | None) -> Any:
        while not future.done():
            run.turn()
        return future.result()

    registered_models = run.registered_models(wait)
    taken = list(run.setup.deployments)
    return _with_clients(run, asked, partial(registered_models.register, taken=taken))


def _with_clients(
    run: LiveRun, asked: Asked, register: Register
) -> tuple[dict[str, Any], Sequence[Outcome]]:
    with asked.clients(register) as clients:
        summary = run.until_finished()
        return summary, clients.outcomes


def hopeless(setup: Setup) -> list[str]:
    """A sentence for each DNN that would miss its constraint with the gaps for itself."""
    render_ms = setup.lone_render_ns / 1e6
    found = [
        too_slow_alone(deployment.plan, fps=setup.fps, render_ms=render_ms)
        for deployment in setup.deployments.values()
    ]
    return [sentence for sentence in found if sentence]
