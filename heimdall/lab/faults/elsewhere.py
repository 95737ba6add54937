"""A server that stands for a machine elsewhere: it takes no core of this one, and answers zeros.

python -m heimdall.lab.faults.elsewhere APP PORT [ANSWER_MS]      until it is killed
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from heimdall.app import load_app
from heimdall.graph.graph import Tensor, load_graph
from heimdall.models.base import Pipeline
from heimdall.models.catalog import open_pipeline
from heimdall.serve import Server
from heimdall.serve.models import Tensors

ANSWER_MS = 5.0


class Elsewhere:
    """The networks of pipelines; an answer comes after ``answer_s``. What is measured with it is
    where inferences run and what becomes of frames, not results."""

    def __init__(self, pipelines: Iterable[Pipeline], answer_s: float) -> None:
        networks = [network for pipeline in pipelines for network in pipeline.networks]
        graphs = [load_graph(network.path, network.shapes or None) for network in networks]
        self._graphs = {graph.name: graph for graph in graphs}
        self._answer_s = answer_s

    def names(self) -> list[str]:
        """See ``Models``."""
        return list(self._graphs)

    def describe(self, name: str) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """See ``Models``."""
        return self._graphs[name].inputs, self._graphs[name].outputs

    def submit(self, name: str, inputs: Tensors, **wishes: Any) -> Future[dict[str, np.ndarray]]:
        """See ``Models``."""
        future: Future[dict[str, np.ndarray]] = Future()
        found = {each.name: np.zeros(each.shape, each.dtype) for each in self._graphs[name].outputs}
        threading.Timer(self._answer_s, future.set_result, (found,)).start()
        return future


def pipelines_of(app: str) -> list[Pipeline]:
    """The pipelines of an app's DNNs."""
    return [
        each.model
        if isinstance(each.model, Pipeline)
        else open_pipeline(each.model, **each.pipeline_options)
        for each in load_app(app).dnns
    ]


def main(app: str, port: str, answer_ms: str = str(ANSWER_MS)) -> None:
    """Serve by gRPC; a line on standard output says when."""
    models = Elsewhere(pipelines_of(app), float(answer_ms) / 1e3)
    with Server(models, http_port=None, grpc_port=int(port)) as server:
        print(*server.addresses, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
