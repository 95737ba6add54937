"""This machine as a machine to simulate: its profiles, and what surrounds inference, measured."""

from __future__ import annotations

import queue
import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import create, validate
from heimdall.app.options import RunOptions
from heimdall.bench.scenario import Scenario
from heimdall.bench.workload import as_app
from heimdall.models.walk import Walk
from heimdall.runtime.callbacks import Callbacks
from heimdall.runtime.deployment import Deployment
from heimdall.runtime.setup import Setup, start
from heimdall.simulator.machine import Machine, SimulatedDnn
from heimdall.system.workers import Workers
from heimdall.vocabulary.processors import GPU

_ROUNDS = 3
_HAND_OVERS = 200
# A software GPU's threads take turns in SCHED_RR's slices; what a real driver does is not known.
_REAL_TIME_SLICE_NS = 100_000_000
_MOVE_NS = 1_000_000  # a run loads every network on both processors beforehand


def measure_here(
    scenario: Scenario, render_ms: float | None = None, progress: Progress = no_progress
) -> tuple[Machine, list[SimulatedDnn]]:
    """The scenario's app on this machine: saved profiles where they are valid, else measured now.

    Opens the devices as a headless run does, and raises what that raises. ``render_ms`` replaces
    the measured time of drawing a frame.
    """
    app_class = as_app(scenario)
    validate(app_class)
    app = create(app_class)
    with start(app, RunOptions(headless=True), progress) as setup:
        Callbacks().call(app.on_start)
        asked = dict(app._requests)  # the options that the app itself gives
        dnns = [
            _around(deployment, setup.first_frame.image, asked.get(name, {}), scenario)
            for name, deployment in setup.deployments.items()
        ]
        return _machine(setup, render_ms), dnns


def _machine(setup: Setup, render_ms: float | None) -> Machine:
    software = setup.processors.software
    costs = [s.chunk_cost_ns for d in setup.deployments.values() for s in d.plan.stages]
    return Machine(
        name="here",
        gpu=setup.gpu_name,
        cpu=str(setup.processors.cpu.describe()["device"]),
        render_ns=setup.lone_render_ns if render_ms is None else round(render_ms * 1e6),
        batch_ns=_REAL_TIME_SLICE_NS if software and software.realtime else 0,
        chunk_cost_ns=round(statistics.median(costs)),
        handoff_ns=_hand_overs(),
        move_ns=_MOVE_NS,
        load_limit=setup.processors.load_limit,
        software_gpu=software is not None,
    )


def _around(
    deployment: Deployment, image: np.ndarray, options: Mapping[str, Any], scenario: Scenario
) -> SimulatedDnn:
    """A DNN with its pre- and postprocessing and its number of crops, on the first frame."""
    rounds = [_infer(deployment, image, options) for _ in range(_ROUNDS)]
    stages = range(len(deployment.plan.stages))
    return SimulatedDnn(
        plan=deployment.plan,
        prepare_ns=tuple(tuple(prepare[stage] for prepare, _, _ in rounds) for stage in stages),
        decode_ns=min(decode for _, decode, _ in rounds),
        event=scenario.settings(deployment.dnn.name).event,
        tasks=tuple((rounds[-1][2][stage],) for stage in stages),
    )


def _infer(
    deployment: Deployment, image: np.ndarray, options: Mapping[str, Any]
) -> tuple[list[int], int, list[int]]:
    """One inference: (preprocessing of each stage in ns, postprocessing in ns, tasks)."""
    walk = Walk(deployment.pipeline, image, options)
    stages = len(deployment.plan.stages)
    prepare_ns, tasks = [0] * stages, [0] * stages  # a stage that is not reached takes nothing
    while not walk.ended:
        stage = walk.stage
        began_ns = time.perf_counter_ns()
        prepared = walk.prepare()
        prepare_ns[stage] = time.perf_counter_ns() - began_ns
        tasks[stage] = len(prepared)
        outputs = [_run(deployment, stage, task.inputs) for task in prepared]
        began_ns = time.perf_counter_ns()
        walk.decode(outputs)
    walk.result()
    return prepare_ns, time.perf_counter_ns() - began_ns, tasks


def _run(
    deployment: Deployment, stage: int, inputs: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    network, state = deployment.network(stage, GPU)
    return network.infer(state, inputs)


def _hand_overs() -> tuple[int, ...]:
    """How long it takes to wake another thread: half of there and back."""
    inbox: queue.SimpleQueue[None] = queue.SimpleQueue()
    workers = Workers("probe")
    seen = []
    for _ in range(_HAND_OVERS):
        began_ns = time.perf_counter_ns()
        workers.submit(inbox.put, None)
        inbox.get()
        seen.append((time.perf_counter_ns() - began_ns) // 2)
        time.sleep(0.0005)
    workers.close()
    return tuple(sorted(seen)[: _HAND_OVERS * 9 // 10])
