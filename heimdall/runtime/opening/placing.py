"""Every network of an app on the processor it begins on: what no compiler need run for on the GPU,
the rest as the run allows, before the first frame or beside it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from heimdall.analyzer.partition import Cut
from heimdall.analyzer.precision import engine_for, is_known, load_for
from heimdall.analyzer.profile import to_stage_plan
from heimdall.analyzer.profiler import Progress
from heimdall.analyzer.store import load_or_measure
from heimdall.app.options import RunOptions
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork
from heimdall.engine.remote import RemoteEngine
from heimdall.errors import ConfigError
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.processors import Processors
from heimdall.runtime.opening.building import Building
from heimdall.vocabulary.processors import GPU

log = logging.getLogger(__name__)

_STEPS = 100  # of a progress bar, a network


def place_networks(
    deployments: Mapping[str, Deployment],
    processors: Processors,
    cut: Cut,
    progress: Progress,
    options: RunOptions,
    beside: bool,
) -> Building | None:
    """Load every network, profile what is not profiled yet, and make the plans. ``beside``: DNNs
    whose kernels must be compiled begin on the CPU, and are built while frames are drawn."""
    gpu = processors.gpu
    if beside:
        found = {name: _built(each, gpu) for name, each in deployments.items()}
    else:
        found = {**_compiled(deployments, gpu, progress)}
    loaded = {name: networks for name, networks in found.items() if networks is not None}
    # Only now: the GPU tries the kernels of one network while the next one is prepared.
    for name, networks in loaded.items():
        deployments[name].place(GPU, [network for _, network in networks])
    for name, networks in loaded.items():
        _profile(deployments[name], networks, processors, cut, progress)
    left = [each for name, each in deployments.items() if name not in loaded]
    if not left:
        return None
    for done, deployment in enumerate(left):
        progress("loading networks on the CPU", done, len(left))
        deployment.begin_on_cpu()
    progress("loading networks on the CPU", len(left), len(left))
    assert not isinstance(options.device, Engine)  # which would have been complete
    return Building(left, processors, options.device, cut)


def place_remotely(
    deployments: Mapping[str, Deployment], engine: RemoteEngine, *, asked: bool
) -> None:
    """Let the DNNs whose networks are all on the server run there too; measure what they take.

    Raises ConfigError where it has none of them although it was ``asked`` for, ModelError for one
    with other tensors, DeviceError where the server does not answer.
    """
    placed = []
    for deployment in deployments.values():
        if all(engine.has(graph) for graph in deployment.graphs):
            networks = [engine.load(graph) for graph in deployment.graphs]
            deployment.place_remotely(networks, [network.measure() for network in networks])
            placed.append(deployment.dnn.name)
    if not placed and asked:
        graphs = [graph.name for each in deployments.values() for graph in each.graphs]
        raise ConfigError(
            f"{engine.address} has none of the networks of this app: serve {', '.join(graphs)} "
            "there, by these names"
        )
    log.info("on %s too: %s", engine.address, ", ".join(placed) or "nothing")


# A DNN's networks, each on the engine of its precision.
_Loaded = list[tuple[Engine, LoadedNetwork]]


def _built(deployment: Deployment, gpu: Engine) -> _Loaded | None:
    """A DNN's networks, if no compiler need run for them."""
    if not gpu.complete:
        return None
    forced, precision = deployment.dnn.force_fallback, deployment.dnn.precision
    loaded = []
    for graph in deployment.graphs:
        if not is_known(gpu, graph, precision, forced):
            return None
        engine = engine_for(gpu, graph, precision, forced)
        network = engine.load_built(graph, force_fallback=forced)
        if network is None:
            return None
        loaded.append((engine, network))
    return loaded


def _compiled(
    deployments: Mapping[str, Deployment], gpu: Engine, progress: Progress
) -> dict[str, _Loaded]:
    """Every network, whatever that takes."""
    all_steps = _STEPS * sum(len(each.graphs) for each in deployments.values())
    done = 0
    loaded: dict[str, _Loaded] = {name: [] for name in deployments}
    for name, deployment in deployments.items():
        forced, precision = deployment.dnn.force_fallback, deployment.dnn.precision
        for graph in deployment.graphs:

            def tell(part: int, parts: int, done: int = done) -> None:
                progress("compiling networks", _STEPS * done + _STEPS * part // parts, all_steps)

            tell(0, 1)
            loaded[name].append(load_for(gpu, graph, precision, forced, tell))
            done += 1
    progress("compiling networks", all_steps, all_steps)
    return loaded


def _profile(
    deployment: Deployment,
    loaded: _Loaded,
    processors: Processors,
    cut: Cut,
    progress: Progress,
) -> None:
    """Make a DNN's plan by its networks' profiles."""
    profiles = [
        load_or_measure(
            network.graph,
            engine,
            processors.cpu,
            network=network,
            mode=processors.profile_key,
            force_fallback=deployment.dnn.force_fallback,
            progress=progress,
        )
        for engine, network in loaded
    ]
    deployment.complete(
        [
            to_stage_plan(profile, cut, exits=network.exits, states=network.held())
            for profile, (_, network) in zip(profiles, loaded, strict=True)
        ]
    )
