"""This machine as a machine to simulate: its profiles, and what surrounds inference, measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import create, validate
from heimdall.app.options import RunOptions
from heimdall.lab.bench.around import driver_turn_ns, measure_around, measure_hand_overs
from heimdall.lab.bench.loads import fit
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.workload import as_app
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.loop.callbacks import Callbacks
from heimdall.runtime.opening.setup import Setup, start

_MOVE_NS = 1_000_000  # a run loads every network on both processors beforehand


def measure_here(
    scenario: Scenario, render_ms: float | None = None, progress: Progress = no_progress
) -> tuple[Machine, list[SimulatedDnn]]:
    """The scenario's app on this machine: saved profiles where they are valid, else measured now.

    Opens the devices as a headless run does, and raises what that raises. ``render_ms`` replaces
    the measured time of drawing a frame.
    """
    options = RunOptions(headless=True)
    scenario, _ = fit(scenario, options, progress)
    app_class = as_app(scenario)
    validate(app_class)
    app = create(app_class)
    with start(app, options, progress) as setup:
        Callbacks().call(app.on_start)
        asked = dict(app._requests)  # the options that the app itself gives
        dnns = [
            _around(deployment, setup.first_frame.image, asked.get(name, {}), scenario)
            for name, deployment in setup.deployments.items()
        ]
        return _machine(setup, render_ms), dnns


def _machine(setup: Setup, render_ms: float | None) -> Machine:
    costs = [s.chunk_cost_ns for d in setup.deployments.values() for s in d.plan.stages]
    return Machine(
        name="here",
        gpu=setup.gpu_name,
        cpu=str(setup.processors.cpu.describe()["device"]),
        render_ns=setup.lone_render_ns if render_ms is None else round(render_ms * 1e6),
        batch_ns=driver_turn_ns(setup.processors),
        chunk_cost_ns=round(statistics.median(costs)),
        handoff_ns=measure_hand_overs(),
        move_ns=_MOVE_NS,
        load_limit=setup.processors.load_limit,
        software_gpu=setup.processors.software is not None,
    )


def _around(
    deployment: Deployment, image: np.ndarray, options: Mapping[str, Any], scenario: Scenario
) -> SimulatedDnn:
    """A DNN with what surrounds it, on the first frame."""
    around = measure_around(deployment, image, options)
    return SimulatedDnn(
        plan=deployment.plan,
        prepare_ns=around.prepare_ns,
        decode_ns=around.decode_ns,
        event=scenario.settings(deployment.dnn.name).event,
        tasks=tuple((tasks,) for tasks in around.tasks),
    )
