"""Models that are asked for without a coordinator: a thread each, which answers its requests in
their order, and knows nothing of the others but what gates tell it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.analyzer.profiler import no_progress
from heimdall.app import App, RunOptions
from heimdall.capture.pushed import PushedSource
from heimdall.errors import ConfigError, RequestError
from heimdall.graph.graph import Graph, load_graph
from heimdall.graph.onnx_file import Inputs
from heimdall.lab.bench.admission import Free, Gate, OneAtATime, Passage
from heimdall.lab.bench.inference import Inference
from heimdall.lab.bench.systems import Admission, System
from heimdall.lab.bench.uncoordinated import Uncoordinated
from heimdall.runtime.execution.processors import Processors
from heimdall.runtime.opening.opening import Opening
from heimdall.runtime.opening.setup import RunContext, Setup
from heimdall.runtime.session.session import as_app
from heimdall.system.faults import say
from heimdall.system.interrupts import INTERRUPTS
from heimdall.vocabulary.reasons import EXPIRED

Outputs = dict[str, np.ndarray]
LAST_S = 20.0  # for the inference that runs when it all ends
_BLACK = (640, 360)  # of the picture of a run that draws none


@dataclass
class _Request:
    inputs: Mapping[str, Any]
    deadline_ns: int
    future: Future[Outputs]


class ThreadedModel:
    """One model, as ``Session.register`` gives them. ``expires``: a request that has not begun at
    its deadline is dropped."""

    exits = ()

    def __init__(
        self,
        name: str,
        graph: Graph,
        inference: Inference,
        slo_ms: float,
        turnstile: Passage,
        *,
        expires: bool,
    ) -> None:
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self._inference, self._slo_ms, self._expires = inference, slo_ms, expires
        self._turnstile = turnstile
        self._line: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def submit(self, inputs: Mapping[str, Any], slo_ms: float | None = None) -> Future[Outputs]:
        """Ask for one inference. The future gets the outputs, or RequestError."""
        slo_ms = self._slo_ms if slo_ms is None else slo_ms
        deadline_ns = time.perf_counter_ns() + round(slo_ms * 1e6)
        request = _Request(inputs, deadline_ns, Future())
        self._line.put(request)
        return request.future

    def run(self, inputs: Mapping[str, Any], slo_ms: float | None = None) -> Outputs:
        """``submit``, and wait for the answer."""
        return self.submit(inputs, slo_ms).result()

    def stop(self) -> None:
        """Answer what has been asked for, and end."""
        self._line.put(None)

    def join(self) -> None:
        """Wait for that end."""
        self._thread.join(LAST_S)
        self._inference.close()

    def _serve(self) -> None:
        while (request := self._line.get()) is not None:
            if self._expires and time.perf_counter_ns() >= request.deadline_ns:
                request.future.set_exception(RequestError(EXPIRED))
                continue
            self._turnstile.enter(request.deadline_ns)
            try:
                self._inference.write(request.inputs)
                self._inference.run()
                outputs = dict(self._inference.read())
            except Exception as error:
                request.future.set_exception(RequestError(say(error)))
            else:
                request.future.set_result(outputs)
            finally:
                self._turnstile.leave()


class ModelThreads:
    """The models of a run under a baseline, on its processors."""

    def __init__(self, system: System, processors: Processors) -> None:
        refuse_batches(system)
        self._baseline, self._processors = Uncoordinated(system), processors
        deadline = system.sharing is not None and system.sharing.admission is Admission.DEADLINE
        self._turnstile: Gate = OneAtATime() if deadline else Free()
        self._models: list[ThreadedModel] = []

    def register(
        self,
        path: str | Path,
        slo_ms: float,
        *,
        name: str,
        shapes: Inputs | None = None,
        priority: str = "",
        expires: bool = False,
    ) -> ThreadedModel:
        """As ``Session.register``; a thread has no ``priority``."""
        graph = load_graph(Path(path), shapes)
        inference = self._baseline.alone(graph, self._processors)
        passage = Passage(self._turnstile, name)
        model = ThreadedModel(name, graph, inference, slo_ms, passage, expires=expires)
        self._models.append(model)
        return model

    def close(self) -> None:
        """Let every thread answer what it has been asked."""
        for model in self._models:
            model.stop()
        for model in self._models:
            model.join()


def refuse_batches(system: System) -> None:
    """Raise ConfigError for a baseline whose threads ask for the GPU part by part: of a model no
    more is known than its file."""
    if system.sharing is not None and system.sharing.batch_ns is not None:
        raise ConfigError(
            f"{system.name} hands over parts of networks: of requests, choose a policy, "
            "multithread, fixed-N, bounded-N, edf, or one of onnxruntime's"
        )


@contextlib.contextmanager
def opened(system: System, options: Mapping[str, Any]) -> Iterator[tuple[ModelThreads, Setup]]:
    """Such models in a run where nothing is drawn; ``options`` are a session's. Raises
    HeimdallError where it cannot start."""
    kept = {name: each for name, each in options.items() if name != "process"}
    place = RunContext(draws=False, source=PushedSource(_BLACK))
    app, baseline = as_app(type("Requests", (App,), {})), Uncoordinated(system)
    opening = Opening(app, RunOptions(headless=True, **kept), place, baseline, no_progress)
    with contextlib.closing(opening), INTERRUPTS.held():
        setup = opening.open().setup
        with contextlib.closing(ModelThreads(system, setup.processors)) as threads:
            yield threads, setup
