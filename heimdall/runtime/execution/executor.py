"""What the coordinator's actions become: work for the GPU worker, the CPU worker and the pool.

Workers touch neither the coordinator nor GL; they post events (and decoded results) to the
inbox that the main thread reads.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from heimdall.models.generation.decoder import DecoderPipeline
from heimdall.models.luminance import MEASURES
from heimdall.runtime.execution.chunks import ChunkRunner
from heimdall.runtime.execution.deployment import Deployment, Networks
from heimdall.runtime.execution.fallbacks import FallbackRunner
from heimdall.runtime.execution.frames import Frames, Newest, Renew
from heimdall.runtime.execution.hearing import Listening
from heimdall.runtime.execution.ledger import Ledger, Message
from heimdall.runtime.execution.pool import Pool
from heimdall.runtime.execution.requests import Requests
from heimdall.runtime.execution.runs import Client, RegisteredDnn, Result, RunningJob
from heimdall.runtime.execution.writing import Writing
from heimdall.system.faults import say
from heimdall.system.priority import (
    in_background,
    lower_priority,
    second_in_line,
)
from heimdall.system.workers import OverdueError, Workers
from heimdall.vocabulary.enums import Lane, Luminance
from heimdall.vocabulary.events import (
    Action,
    DnnMoved,
    Drop,
    Finish,
    InferenceRequested,
    InputReady,
    Move,
    Prepare,
    RunChunk,
    RunFallback,
    RunTogether,
    Yield,
)
from heimdall.vocabulary.processors import CPU

if TYPE_CHECKING:
    from heimdall.engine.base import Engine
    from heimdall.runtime.telemetry.spans import Spans


log = logging.getLogger(__name__)

# A network, on a machine that has no time for it: one that jobs wait for, one that none does.
LOADING_S, PRELOADING_S = 60.0, 300.0
WATCH_NS = 50_000_000
DRAIN_S, CLOSING_S = 0.7, 0.2  # for work of a session that ends
POOL_NICE = 5
_NOT_READ = object()


class Executor(Ledger):
    """Carries out actions on worker threads. Its methods are called on the main thread only."""

    def __init__(
        self,
        inbox: queue.SimpleQueue[Message],
        spans: Spans | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        urgent: bool = True,
        cpu_workers: int = 1,
        luminance: str = Luminance.CELLS,
        engines: Mapping[str, Engine] = MappingProxyType({}),
    ) -> None:
        """``urgent``: its threads may be real-time ones, where that is permitted. ``cpu_workers``:
        how many jobs the CPU runs at once, each on one core. ``luminance``: of what the change
        from a DNN's last picture to the next is summed."""
        super().__init__(inbox, spans, clock)
        self._measure = MEASURES[luminance]
        self._closing = False
        self._leaving: set[str] = set()  # DNNs that are not needed any more
        self._left_behind: list[RegisteredDnn] = []  # a thread may use them until the process ends
        self.preloaded = threading.Event()  # no loading is under way
        self.preloaded.set()
        self._urgent = urgent
        nicely = partial(lower_priority, POOL_NICE)
        self._cpu = Workers("cpu", cpu_workers, in_background if urgent else nicely, clock)
        self._fallbacks = FallbackRunner(self, partial(self._step_failed, "fallback op"), urgent)
        follow = self._fallbacks.follow
        self._chunks = ChunkRunner(self, engines, self._cpu, cpu_workers, nicely, urgent, follow)
        self._pool, self._watch_ns = Pool(2, nicely, clock), 0
        self.requests = Requests(inbox, self._serve)
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: self._on_prepare,
            RunChunk: self._chunks.run,
            Yield: lambda action: self._chunks.yields(action.job),
            RunTogether: self._chunks.run_together,
            RunFallback: self._fallbacks.run,
            Move: self._on_move,
            Finish: self._on_finish,
            Drop: self._on_drop,
        }

    def add(
        self,
        name: str,
        deployment: Deployment,
        newest: Newest,
        renew: Renew = lambda value, frame: None,
    ) -> Frames:
        """A DNN of an app, whose actions will come. ``newest`` gives the frame of a job that
        begins; ``renew`` hears of each result in the pool, before the inbox does. Returns its
        client: of one that listens, a Listening; of a language model's, a Writing."""
        client: Frames
        about = deployment, newest, renew, self._measure, self._pool.shared

        def ask() -> None:
            self.inbox.put(InferenceRequested(name))

        if isinstance(deployment.pipeline, DecoderPipeline):
            client = Writing(*about, ask=ask)
        elif deployment.dnn.hears is not None:
            client = Listening(*about, ask=ask)
        else:
            client = Frames(*about)
        self._host(name, deployment.name, deployment, client)
        return client

    def _serve(self, name: str, networks: Networks) -> None:
        """A model that answers requests. From any thread."""
        self._host(name, name, networks, self.requests)

    def _host(self, name: str, own: str, networks: Networks, client: Client) -> None:
        """``own``: what messages call it."""
        self._use(name)
        self.registered[name] = RegisteredDnn(own, networks, client, partial(self.report, name))

    def leave(self, names: Iterable[str]) -> None:
        """DNNs that will be removed: nothing is loaded for them any more."""
        self._leaving.update(names)

    def remove(self, names: Iterable[str]) -> bool:
        """DNNs that have been dropped, or models whose clients are told so: returns when no thread
        works for them any more. False: one still does, after ``DRAIN_S``; then their networks are
        kept as they are."""
        names = list(names)
        self.requests.leave(names)
        self.leave(names)
        ended = self._drain()
        self._leaving.difference_update(names)
        for name in names:
            self._forget(name)
            if ended:
                self.registered.pop(name, None)
            else:  # what a thread may look up stays, until a DNN of that name is added
                self.registered[name].networks.in_use = True
                self._left_behind.append(self.registered[name])
        return ended

    @property
    def _workers(self) -> list[Workers]:
        return [
            *self._chunks.workers,
            self._fallbacks.workers,
            *self._pool.workers,
            self.requests.workers,
        ]

    def _drain(self) -> bool:
        """True if all threads have done what they were given, within ``DRAIN_S`` altogether."""
        until_s = time.monotonic() + DRAIN_S
        return all(workers.drain(max(0.0, until_s - time.monotonic())) for workers in self._workers)

    def ask(self, name: str, options: Mapping[str, Any]) -> None:
        """The options of the next job of an app's DNN."""
        client = self.registered[name].client
        assert isinstance(client, Frames)
        client.options = options

    def watch(self) -> None:
        """Give up what hangs: another thread takes its place, its DNN and users are told, and what
        it brings later is not used. At every frame."""
        now_ns = self.clock()
        if now_ns < self._watch_ns:
            return
        self._watch_ns = now_ns + WATCH_NS
        for workers in self._workers:
            workers.give_up_overdue()

    def execute(self, actions: Sequence[Action]) -> None:
        """Dispatch ``actions``; none of them blocks. Once it is closed nothing is done: who waited
        has been told so, and what a request brought is gone."""
        if self._closing:
            return
        for action in actions:
            self._handlers[type(action)](action)

    def preload(self, names: Iterable[str]) -> None:
        """Load these DNNs on the CPU too, beside the first frames. ``preloaded`` is set when that
        is over."""
        self.preloaded.clear()
        names = list(names)
        left = set(names)
        if not left:
            self.preloaded.set()

        def over(name: str, error: BaseException | None = None) -> None:
            if error is not None:
                self.report(name, "loading on the CPU", error)
            left.discard(name)
            if not left:
                self.preloaded.set()

        for name in names:
            failed = partial(over, name)
            self._cpu.submit(self._preload, name, over, bound_s=PRELOADING_S, failed=failed)

    def _preload(self, name: str, over: Callable[[str], None]) -> None:
        self._preload_one(name)
        over(name)

    def _preload_one(self, name: str) -> None:
        registered = self.registered.get(name)
        if registered is None or self._closing or name in self._leaving:
            return  # it is not needed any more, and each takes a while
        if registered.processor == CPU:
            return  # it is there, and in use
        # Loading holds the interpreter lock for tens of ms (100 MB of weights: for hundreds),
        # which frames feel: shortest when nothing interrupts it.
        if self._urgent:
            second_in_line()
        try:
            registered.networks.load(CPU)
        finally:
            if self._urgent:
                in_background()
        registered.networks.warm_up(CPU)

    def close(self) -> None:
        """Wait for what is running, then end the threads; clients that still wait are told so."""
        self._closing = True
        self._chunks.prober.close()
        self.requests.close()
        for run in tuple(self.runs.values()):
            run.registered.client.workers.submit(run.give_up, "the session was closed")
        until_s = time.monotonic() + CLOSING_S
        for workers in self._workers:  # all of them, before the first is waited for
            workers.end()
        for workers in self._workers:
            workers.close(max(0.0, until_s - time.monotonic()))

    # --- main thread -----------------------------------------------------------------

    def _on_prepare(self, action: Prepare) -> None:
        if action.stage == 0:
            self._end(action.job)  # where it begins anew: what it had is not read any more
            registered = self.registered[action.dnn]
            self.runs[action.job] = registered.client.begin(action, registered, self.clock())
        run = self.runs[action.job]
        if run.prepared:
            self.inbox.put(InputReady(action.job))
        elif run.quick:
            try:
                self._prepare(action, run)
            except Exception as error:
                self._step_failed("preprocess", action, run, error)
        else:
            self._in_pool("preprocess", self._prepare, action, run)

    def _in_pool(
        self, step: str, call: Callable[..., None], action: Prepare | Finish, run: RunningJob
    ) -> None:
        failed = partial(self._step_failed, step, action, run)
        self._pool.submit(action.dnn, call, action, run, failed=failed)

    def _step_failed(
        self,
        step: str,
        action: Prepare | Finish | RunFallback,
        run: RunningJob | None,
        error: BaseException,
    ) -> None:
        if run is not None:
            run.told.set()
            if run.abandoned:
                return  # it has failed; it went on for a moment, without its tensors
            if isinstance(error, OverdueError):
                run.abandon()
        self.failed(action.job, action.dnn, step, error)

    def _end(self, job: int) -> RunningJob | None:
        run = self.runs.pop(job, None)
        if run is not None:
            run.end()
        return run

    def _on_move(self, action: Move) -> None:
        # To the CPU: behind what it loads and runs now, as the jobs that follow would be.
        if action.processor == CPU or not self.registered[action.dnn].networks.has(
            action.processor
        ):
            failed = partial(self._not_moved, action)
            self._cpu.submit(self._move, action, bound_s=LOADING_S, failed=failed)
        else:
            self._moved(action, self.clock())

    def _on_finish(self, action: Finish) -> None:
        run = self.runs.pop(action.job)
        run.registered.told = run.told
        if run.patient:  # its client may take as long as it likes over its answer
            failed = partial(self._step_failed, "answer", action, run)
            run.registered.client.workers.submit(self._finish, action, run, failed=failed)
        else:
            self._in_pool("decode", self._finish, action, run)

    def _on_drop(self, action: Drop) -> None:
        run, registered = self._end(action.job), self.registered.get(action.dnn)
        if registered is not None:
            registered.client.dropped(action, run)

    # --- pool ------------------------------------------------------------------------

    def _prepare(self, action: Prepare, run: RunningJob) -> None:
        if self.runs.get(action.job) is not run:  # dropped meanwhile
            return
        start_ns = self.clock()
        tasks, difference = run.prepare(action.stage)
        if run.abandoned:
            return
        self.span(Lane.POOL, f"{action.dnn} preprocess", start_ns, stage=action.stage)
        frame = run.frame.sequence if run.frame is not None and action.stage == 0 else None
        self.inbox.put(InputReady(action.job, tasks, difference, frame))

    def _finish(self, action: Finish, run: RunningJob) -> None:
        try:
            self._tell(action, run)
        finally:
            run.told.set()

    def _tell(self, action: Finish, run: RunningJob) -> None:
        start_ns = self.clock()
        value = self._decoded(action, run)
        if run.abandoned or value is _NOT_READ:
            return
        self.span(Lane.POOL, f"{action.dnn} decode", start_ns)
        decoded_ns = self.clock()
        self.inbox.put(Result(action.dnn, value, run.frame, action, run.requested_ns, decoded_ns))

    def _decoded(self, action: Finish, run: RunningJob) -> Any:
        """The job's result, or _NOT_READ where the processor does not give it."""
        try:
            run.read_last()
        except Exception as error:
            run.give_up(f"its outputs cannot be read: {say(error)}")
            self.failed(action.job, action.dnn, "reading outputs", error)
            self._chunks.count_failure(action.processor, run)
            return _NOT_READ
        finally:
            run.end()
        return run.result()

    def _move(self, action: Move) -> None:
        start_ns = self.clock()
        self.registered[action.dnn].networks.load(action.processor)
        self._moved(action, start_ns)

    def _not_moved(self, action: Move, error: BaseException) -> None:
        self.report(action.dnn, f"move to {action.processor}", error)
        self.inbox.put(DnnMoved(action.dnn, self.registered[action.dnn].processor))

    def _moved(self, action: Move, start_ns: int) -> None:
        self.registered[action.dnn].processor = action.processor
        self.span(
            Lane.CPU, f"{action.dnn} moves to {action.processor}", start_ns, reason=action.reason
        )
        self.inbox.put(DnnMoved(action.dnn, action.processor))
