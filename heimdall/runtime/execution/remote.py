"""A remote server as one more processor of a run: which DNNs it has, and what they take there."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from heimdall.engine.remote import RemoteEngine
from heimdall.errors import ConfigError
from heimdall.runtime.execution.deployment import Deployment

log = logging.getLogger(__name__)


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
