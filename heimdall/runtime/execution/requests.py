"""Requests: the client of models that a session serves.

A request is one inference on tensors of its own. Any thread may submit some, which the coordinator
hears of through the inbox.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heimdall.errors import AppError, RequestError
from heimdall.runtime.execution.deployment import Networks
from heimdall.runtime.execution.runs import RegisteredDnn, RunningJob
from heimdall.runtime.execution.unit_network import Tensors
from heimdall.system.workers import Workers
from heimdall.vocabulary.events import Drop, InferenceRequested, Prepare

if TYPE_CHECKING:
    import numpy as np


@dataclass(eq=False)
class Request:
    """One until it is answered."""

    dnn: str
    inputs: Tensors
    future: Future[dict[str, np.ndarray]] = field(default_factory=Future)

    def settle(self, outputs: Tensors | None, error: str = "") -> None:
        """Answer it, or say why there is no answer, unless that was done, or no client waits."""
        future = self.future
        if future.done() or not (future.running() or future.set_running_or_notify_cancel()):
            return
        if outputs is not None:
            future.set_result(dict(outputs))
        else:
            future.set_exception(RequestError(f"{self.dnn}: the request has no answer: {error}"))


class RequestRun(RunningJob):
    """A job for a request."""

    prepared = patient = True

    def __init__(self, request: Request, registered: RegisteredDnn, requested_ns: int) -> None:
        super().__init__(registered, requested_ns)
        self.request, self.inputs = request, [request.inputs]

    def prepare(self, stage: int) -> tuple[int, float]:
        return len(self.inputs), 0.0

    def result(self) -> None:
        self.request.settle(self.outputs[0])

    def give_up(self, reason: str) -> None:
        self.request.settle(None, reason)

    def afresh(self) -> RequestRun:
        again = RequestRun(self.request, self.registered, self.requested_ns)
        again.failed_on = self.failed_on
        return again


class Requests:
    """All requests of an executor. ``serve``, ``submit`` and ``number`` are for any thread, the
    rest for the main thread."""

    def __init__(
        self, inbox: queue.SimpleQueue[Any], host: Callable[[str, Networks], None]
    ) -> None:
        """``host``: how the executor is told of a DNN whose actions will come."""
        self.workers = Workers("answers")  # clients' callbacks, however long
        self._inbox, self._host = inbox, host
        self._served: set[str] = set()
        self._waiting: dict[int, Request] = {}  # no jobs yet
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # between submitting and removing

    def add(self, name: str, networks: Networks) -> None:
        """A model whose requests may come."""
        self.host(name, networks)
        self.serve(name)

    def serve(self, name: str) -> None:
        """Requests of that model may come; it is there (``host``) before they are taken. From any
        thread."""
        with self._lock:
            self._served.add(name)

    def host(self, name: str, networks: Networks) -> None:
        """Tells the executor of a model."""
        self._host(name, networks)

    def number(self) -> int:
        """The number of the next request. From any thread."""
        return next(self._numbers)

    def submit(
        self, number: int, name: str, inputs: Tensors, slo_ns: int | None = None
    ) -> Future[dict[str, np.ndarray]]:
        """Ask for one inference, from any thread. The future gets the outputs by name, or
        RequestError. Raises AppError when the model is not served any more."""
        with self._lock:
            if name not in self._served:
                raise AppError(f"{name!r} is not served any more")
            request = self._waiting[number] = Request(name, inputs)
            self._inbox.put(InferenceRequested(name, number, slo_ns))
        return request.future

    def leave(self, names: Iterable[str]) -> None:
        """These models are not served any more: clients that still wait are told so."""
        names = set(names)
        with self._lock:
            self._served -= names
            left = [number for number, each in self._waiting.items() if each.dnn in names]
            requests = [self._waiting.pop(number) for number in left]
        for request in requests:
            self.workers.submit(request.settle, None, "the session was closed")

    def close(self) -> None:
        """No model is served any more: clients that still wait are told so."""
        self.leave(set(self._served))

    def begin(self, action: Prepare, registered: RegisteredDnn, now_ns: int) -> RunningJob:
        assert action.request is not None
        return RequestRun(self._waiting.pop(action.request), registered, now_ns)

    def dropped(self, action: Drop, run: RunningJob | None) -> None:
        if action.request is None:
            return
        if isinstance(run, RequestRun):
            request: Request | None = run.request
        else:  # refused before it was a job
            request = self._waiting.pop(action.request, None)
        if request is None:
            return
        if action.again:
            self._waiting[action.request] = request
        else:
            self.workers.submit(request.settle, None, action.reason)
