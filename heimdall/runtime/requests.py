"""Requests on this machine: what becomes of the actions for queued DNNs.

A request is one inference on tensors of its own. Any thread may submit some, which the coordinator
hears of through the inbox; its actions run ranges of units on the workers of each processor. What
a range needs of the one before is copied there if that ran elsewhere, and computed anew if it is
lost.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heimdall.engine.exits import may_skip
from heimdall.engine.network import State
from heimdall.errors import AppError, ModelError, RequestError
from heimdall.runtime.parts import Parts
from heimdall.runtime.prober import Prober
from heimdall.runtime.served import Placed, Served
from heimdall.runtime.together import Ready
from heimdall.system.faults import say
from heimdall.system.workers import Workers
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    DnnMoved,
    Drop,
    Finish,
    InferenceRequested,
    InputReady,
    JobFailed,
    Move,
    Prepare,
    RunChunk,
    Yield,
)
from heimdall.vocabulary.processors import GPU

Tensors = Mapping[str, np.ndarray]
Span = Callable[..., None]  # (lane, name, start_ns, end_ns, **details)
Report = Callable[[str, str, BaseException], None]  # (DNN, what failed, why)

DRAIN_S = 5.0  # for what runs for a session that ends
_NO_JOB = -1


@dataclass(frozen=True)
class Answer:
    """A request of ``dnn`` has been answered."""

    dnn: str
    finish: Finish


@dataclass(eq=False)
class _Request:
    """One request until it is answered. ``state``: where its tensors are, on ``processor``, before
    ``unit``; None before its first range, and when they are lost. ``failed_on``: processors that
    were lost when they ran it."""

    id: int
    dnn: str
    served: Served
    inputs: Tensors
    future: Future[dict[str, np.ndarray]] = field(default_factory=Future)
    processor: str = ""
    state: State | None = None
    unit: int = 0
    over: bool = False
    failed_on: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)  # of its state

    @property
    def placed(self) -> Placed:
        """Where its state is."""
        return self.served.placed[self.processor]

    def release(self) -> None:
        """Leave the state to another request."""
        if self.state is not None:
            self.placed.free(self.state)
        self.state = None

    def settle(self, outputs: dict[str, np.ndarray] | None, error: str = "") -> None:
        """Answer it, or say why there is no answer, unless that was done, or nobody waits."""
        future = self.future
        if future.done() or not (future.running() or future.set_running_or_notify_cancel()):
            return
        if outputs is not None:
            future.set_result(outputs)
        else:
            future.set_exception(RequestError(error))


class Requests:
    """The executor's part for queued DNNs. ``submit`` is for any thread, the rest for the main
    thread."""

    def __init__(
        self,
        inbox: queue.SimpleQueue[Any],
        workers: Mapping[str, Workers],
        prober: Prober,
        clock: Callable[[], int],
        span: Span,
        report: Report,
    ) -> None:
        """``workers`` by processor; others get a thread of their own when they are first used."""
        self._inbox, self._clock, self._span, self._report = inbox, clock, span, report
        self._shared, self._own = dict(workers), dict[str, Workers]()
        self._answers = Workers("answers")  # callbacks of clients run there
        self._prober = prober
        self._served: dict[str, Served] = {}
        self._parts: dict[str, Parts] = {}
        self._waiting: dict[int, _Request] = {}  # no jobs yet
        self._jobs: dict[int, _Request] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # between who submits and who removes
        self._yielding = _NO_JOB
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: self._on_prepare,
            RunChunk: self._on_run_chunk,
            Yield: self._on_yield,
            Finish: self._on_finish,
            Drop: self._on_drop,
            Move: self._on_move,
        }

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def add(self, name: str, served: Served) -> None:
        """A queued DNN whose actions will come. From any thread."""
        stage = served.stage
        self._parts[name] = Parts(stage.op_ns, stage.chunk_cost_ns)
        self._served[name] = served

    def remove(self, names: Iterable[str], timeout_s: float = DRAIN_S) -> bool:
        """DNNs that have been dropped: who still waits is told so. False: a thread still works for
        them after that time."""
        names = set(names)
        with self._lock:
            for name in names:
                self._served.pop(name, None)
            left = [each for each in self._waiting.values() if each.dnn in names]
            for request in left:
                del self._waiting[request.id]
        for request in left:
            self._answers.submit(self._give_up, request, "the session was closed")
        until_s = time.monotonic() + timeout_s
        every = [*self._shared.values(), *self._own.values(), self._answers]
        ended = all(each.drain(max(0.0, until_s - time.monotonic())) for each in every)
        for name in names if ended else ():
            del self._parts[name]
        return ended

    def number(self) -> int:
        """Of the next request. From any thread."""
        return next(self._numbers)

    def submit(
        self, number: int, name: str, inputs: Tensors, slo_ns: int | None = None
    ) -> Future[dict[str, np.ndarray]]:
        """Ask for one inference, from any thread. The future gets the outputs by name, or
        RequestError. Raises AppError when the DNN is not served any more."""
        with self._lock:
            served = self._served.get(name)
            if served is None:
                raise AppError(f"{name!r} is not served any more")
            request = _Request(number, name, served, inputs)
            self._waiting[number] = request
            self._inbox.put(InferenceRequested(name, number, slo_ns))
        return request.future

    def execute(self, action: Action) -> None:
        """Begin an action; never waits."""
        self._handlers[type(action)](action)

    def close(self) -> None:
        """Wait for what is running, then end the threads; who still waits is told so."""
        with self._lock:
            self._served.clear()
            left = [*self._waiting.values(), *self._jobs.values()]
        for request in left:
            self._answers.submit(self._give_up, request, "the session was closed")
        for workers in (*self._own.values(), self._answers):
            workers.close()

    # --- main thread -----------------------------------------------------------------

    def _on_prepare(self, action: Prepare) -> None:
        assert action.request is not None
        self._jobs[action.job] = self._waiting.pop(action.request)
        self._inbox.put(InputReady(action.job))

    def _on_run_chunk(self, action: RunChunk) -> None:
        self._yielding = _NO_JOB
        losses = self._prober.losses(action.processor)
        self.workers(action.processor).submit(self.run_chunk, action, losses)

    def _on_yield(self, action: Yield) -> None:
        self._yielding = action.job

    def _on_move(self, action: Move) -> None:
        """Its networks are everywhere: policies that bind a DNN to a processor may change that."""
        there = action.processor in self._served[action.dnn].placed
        self._inbox.put(DnnMoved(action.dnn, action.processor if there else GPU))

    def _on_finish(self, action: Finish) -> None:
        self._answers.submit(self._finish, action, self._jobs.pop(action.job))

    def _on_drop(self, action: Drop) -> None:
        request = self._jobs.pop(action.job, None)
        if request is None and action.request is not None:  # refused before it was a job
            request = self._waiting.pop(action.request, None)
        if request is None:
            return
        if action.again:
            self._waiting[request.id] = request
        else:
            self._answers.submit(self._give_up, request, action.reason)

    def workers(self, processor: str) -> Workers:
        """Those that run its chunks."""
        found = self._shared.get(processor) or self._own.get(processor)
        if found is None:
            found = self._own[processor] = Workers(processor)
        return found

    # --- the processors' workers -----------------------------------------------------

    def run_chunk(self, action: RunChunk, losses: int) -> None:
        """On one of the processor's workers. ``losses``: how often the processor had been lost when
        that was decided."""
        request, start_ns = self._jobs.get(action.job), self._clock()
        end, elapsed_ns = action.end_op, 0  # where it was dropped meanwhile
        if request is not None:
            try:
                with request.lock:
                    if not request.over:
                        end, elapsed_ns = self._run(request, action)
            except ModelError as error:
                self._failed(request, action, error)
                return
            except Exception as error:  # engines raise what their drivers do
                self._lost(request, action, error)
                return
        if losses != self._prober.losses(action.processor):
            return  # lost meanwhile: the job has been put back, and may run elsewhere by now
        self._span(
            action.processor,
            action.dnn,
            start_ns,
            start_ns + elapsed_ns,
            ops=f"{action.start_op}-{end}",
            reason=action.reason,
            expected_ms=action.expected_ns / 1e6,
        )
        self._inbox.put(
            ChunkFinished(action.job, action.processor, action.start_op, end, elapsed_ns)
        )

    @contextlib.contextmanager
    def joined(self, action: RunChunk) -> Iterator[Ready | None]:
        """A job that runs together with others while the context lasts; see ``together.launch``."""
        request = self._jobs.get(action.job)
        if request is None:
            yield None
            return
        with request.lock:
            if request.over:
                yield None
                return
            state = self._brought(request, action.processor, action.start_op)
            # Should it end with an error, its tensors are those of no unit.
            request.processor, request.state = action.processor, None
            yield Ready(request.placed, state)
            request.state, request.unit = state, action.end_op

    def _run(self, request: _Request, action: RunChunk) -> tuple[int, int]:
        """The unit before which it stopped, and how long it took, with what it took to get the
        tensors here."""
        try:
            return self._run_once(request, action)
        except ModelError:
            raise
        except Exception as error:
            self._report(action.dnn, f"{action.processor} inference, tried again", error)
            return self._run_once(request, action)

    def _run_once(self, request: _Request, action: RunChunk) -> tuple[int, int]:
        began_ns = self._clock()
        placed = request.served.placed[action.processor]
        state = self._brought(request, action.processor, action.start_op)
        # From now on, until it has run, its tensors are those of no unit.
        request.processor, request.state = action.processor, None
        brought_ns = self._clock() - began_ns
        if placed.lacks(action.start_op, action.end_op):
            end, ran_ns = action.end_op, placed.run(state, action.start_op, action.end_op)
        else:
            end, ran_ns = self._run_parts(placed, state, action)
        request.state, request.unit = state, end
        return end, brought_ns + ran_ns

    def _run_parts(self, placed: Placed, state: State, action: RunChunk) -> tuple[int, int]:
        pace = self._parts[action.dnn].pace(action, self._clock)

        def go_on(part: int) -> bool:
            return self._yielding != action.job and pace.go_on(part)

        ends = [placed.edges[end] for end in pace.ends]
        op, ran_ns = placed.network.run_parts(state, placed.edges[action.start_op], ends, go_on)
        return placed.edges.index(op), ran_ns

    def _brought(self, request: _Request, processor: str, unit: int) -> State:
        """A state on ``processor`` before ``unit``."""
        if request.state is not None and request.processor == processor:
            placed = request.placed
            here, there = placed.edges[request.unit], placed.edges[unit]
            if may_skip(placed.network.exits, here, there):
                return request.state
        placed, inputs = request.served.placed[processor], request.inputs
        tensors = self._handed_over(request, unit)
        request.release()
        state = placed.state()
        if tensors is None:
            placed.network.write(state, inputs)
            placed.run(state, 0, unit)
        else:
            placed.network.take_over(state, placed.edges[unit], inputs, tensors)
        return state

    def _handed_over(self, request: _Request, unit: int) -> Tensors | None:
        """The tensors before ``unit``; None where there are none yet, or they are lost."""
        if not unit or request.state is None or request.unit != unit:
            return None
        try:
            return request.placed.network.hand_over(request.state)
        except Exception as error:
            self._report(request.dnn, f"reading tensors from {request.processor}", error)
            request.state = None
            return None

    def _lost(self, request: _Request, action: RunChunk, error: Exception) -> None:
        """A processor does not do what it should: the coordinator sends its jobs elsewhere. One
        that has already cost us a processor is not tried there again."""
        processor = action.processor
        if processor in request.failed_on:
            self._failed(request, action, error)
            return
        request.failed_on.add(processor)
        self._report(action.dnn, f"{processor} inference", error)
        self._prober.lose(processor, lambda: _probe(request.served.placed[processor]))

    def _failed(self, request: _Request, action: RunChunk, error: Exception) -> None:
        self._report(action.dnn, f"{action.processor} inference", error)
        self._inbox.put(JobFailed(action.job, say(error)))

    # --- the answers' thread ---------------------------------------------------------

    def _finish(self, action: Finish, request: _Request) -> None:
        with request.lock:
            request.over = True
            try:
                assert request.state is not None
                outputs = request.placed.network.read(request.state)
            except Exception as error:
                self._report(action.dnn, "reading outputs", error)
                request.settle(None, f"{action.dnn}: its outputs cannot be read: {say(error)}")
                self._inbox.put(JobFailed(action.job, say(error)))
                return
            request.release()
        request.settle(outputs)
        self._inbox.put(Answer(action.dnn, action))

    def _give_up(self, request: _Request, reason: str) -> None:
        with request.lock:
            request.over = True
            request.release()
        request.settle(None, f"{request.dnn}: the request has no answer: {reason}")


def _probe(placed: Placed) -> None:
    """Raise what a processor raises when it runs a network's first unit."""
    network = placed.network
    state = network.new_state()
    network.write(state, {each.name: np.zeros(each.shape, each.dtype) for each in network.inputs})
    placed.run(state, 0, 1)
