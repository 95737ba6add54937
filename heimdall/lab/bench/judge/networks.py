"""The warm-up: every network that the programme uses is compiled, profiled and tried once."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import DNN, App, create
from heimdall.app.options import RunOptions
from heimdall.errors import ConfigError
from heimdall.lab.bench.around import driver_turn_ns, measure_around, measure_hand_overs
from heimdall.lab.bench.judge.identity import network_id, thinned, us
from heimdall.lab.bench.loads import fit
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.workload import as_app
from heimdall.models.catalog import CATALOG
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.loop.callbacks import Callbacks
from heimdall.runtime.opening.setup import RunContext, Setup, start
from heimdall.vocabulary.plans import StagePlan

log = logging.getLogger(__name__)


def bundled() -> list[str]:
    """The catalogue's own models, without those of other packages."""
    others = set(CATALOG.others())
    return [name for name in CATALOG if name not in others]


def profile_networks(
    device: str | None,
    scenarios: Sequence[str],
    models: Sequence[str],
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The processors as the simulator knows them, and the ``networks`` of the scenarios and of
    the models with their own options: times of ops, of the whole on a core, and of what surrounds
    it. A scenario whose loads this machine cannot have is left out, and told. Raises what opening
    them raises."""
    options = RunOptions(headless=True, device=device, size=(1280, 720))
    apps: list[tuple[type[App], dict[str, str]]] = []  # what a DNN's network is called
    for scenario in map(load_scenario, scenarios):  # whose stand-ins an app does not call so
        try:
            workload, _ = fit(scenario, options, progress)
        except ConfigError as error:  # on a large GPU no picture makes a network take long
            log.warning("without the networks of %s: %s", scenario.name, error)
            continue
        asked_ms = {dnn.name: workload.settings(dnn.name).alone_ms for dnn in workload.declared()}
        keys = {dnn.name: network_id(dnn, asked_ms[dnn.name]) for dnn in workload.declared()}
        apps.append((as_app(workload), keys))
    if models:
        dnns = tuple(DNN(name, model=name) for name in models)
        keys = {dnn.name: network_id(dnn) for dnn in dnns}
        apps.append((type("Catalogue", (App,), {"dnns": dnns}), keys))
    machine: dict[str, Any] = {}
    networks: dict[str, dict[str, Any]] = {}
    for app_class, keys in apps:
        app = create(app_class)
        with start(app, options, progress, place=RunContext(draws=False)) as setup:
            Callbacks().call(app.on_start)
            asked = dict(app._requests)
            machine = machine or _processors(setup)
            for name, deployment in setup.deployments.items():
                key = keys[name]
                if key not in networks:
                    image, given = setup.first_frame.image, asked.get(name, {})
                    networks[key] = _network(key, deployment, image, given)
    return {"processors": machine, "networks": list(networks.values())}


def _processors(setup: Setup) -> dict[str, Any]:
    return {
        "gpu": setup.gpu_name,
        "cpu": str(setup.processors.cpu.describe()["device"]),
        "software_gpu": setup.processors.software is not None,
        "turn_ms": driver_turn_ns(setup.processors) / 1e6,
        "load_limit": setup.processors.load_limit,
        "handoff_us": thinned(map(us, measure_hand_overs())),
    }


def _network(
    key: str, deployment: Deployment, image: np.ndarray, options: Mapping[str, Any]
) -> dict[str, Any]:
    around = measure_around(deployment, image, options)
    each = zip(deployment.plan.stages, around.prepare_ns, around.tasks, strict=True)
    return {
        "network": key,
        "decode_us": us(around.decode_ns),
        "stages": [_stage(plan, prepare_ns, tasks) for plan, prepare_ns, tasks in each],
    }


def _stage(plan: StagePlan, prepare_ns: Sequence[int], tasks: int) -> dict[str, Any]:
    return {
        "cpu_us": us(plan.cpu_ns),
        "chunk_cost_us": us(plan.chunk_cost_ns),
        "prepare_us": list(map(us, prepare_ns)),
        "tasks": tasks,
        "fallback_ops": [op for op, falls_back in enumerate(plan.fallback) if falls_back],
        "op_us": list(map(us, plan.op_ns)),
    }
