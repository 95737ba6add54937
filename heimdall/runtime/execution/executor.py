"""What the coordinator's actions become: work for the GPU worker, the CPU worker and the pool.

Workers touch neither the coordinator nor GL; they post events (and decoded results) to the
inbox that the main thread reads.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from heimdall.errors import DeviceError, ModelError
from heimdall.models.luminance import MEASURES
from heimdall.runtime.execution.deployment import Deployment, Networks
from heimdall.runtime.execution.frames import Frames, Newest, Renew
from heimdall.runtime.execution.pool import HANGING_S, Pool
from heimdall.runtime.execution.prober import Prober
from heimdall.runtime.execution.requests import Requests
from heimdall.runtime.execution.runs import Client, RegisteredDnn, Result, RunningJob
from heimdall.runtime.execution.together import chunks_of, launch
from heimdall.runtime.execution.unit_network import Placement
from heimdall.system.faults import SharedFallible, say
from heimdall.system.priority import (
    first_in_line,
    in_background,
    lower_priority,
    on_any_core,
    second_in_line,
)
from heimdall.system.workers import OverdueError, Workers
from heimdall.vocabulary.enums import Lane, Luminance
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    DnnMoved,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    InputReady,
    JobFailed,
    Move,
    Prepare,
    RunChunk,
    RunFallback,
    RunTogether,
    Yield,
)
from heimdall.vocabulary.processors import CPU, GPU, REMOTE, SERVER

if TYPE_CHECKING:
    from heimdall.engine.base import Engine
    from heimdall.runtime.telemetry.spans import Spans


log = logging.getLogger(__name__)

GPU_FAILURES_UNTIL_LOST = 3
# What has not come back for so long hangs: it is named, given up, and another thread takes over. A
# chunk has so many times what it was expected to take, if that is longer; the CPU's run behind all
# others, and wait for a core like other programs.
CPU_HANGING_S, LOADING_S, TIMES_EXPECTED = 10.0, 60.0, 20
WATCH_NS = 50_000_000
DRAIN_S, CLOSING_S = 0.7, 0.2  # for work of a session that ends
_NO_JOB = -1
_NOT_READ = object()
POOL_NICE = 5
_NICE_ONLY = 10  # behind all that feeds frames, and before compilers


Message = Event | Result  # what workers report


class Executor(SharedFallible):
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
        super().__init__()
        self._clock = clock
        self._registered: dict[str, RegisteredDnn] = {}
        self._runs: dict[int, RunningJob] = {}
        self._inbox = inbox
        self._spans = spans
        self._measure = MEASURES[luminance]
        self._yielding = _NO_JOB  # its chunk on the GPU ends as soon as it may
        self._gpu_failures = 0
        self._closing = False
        self._leaving: set[str] = set()  # DNNs that are not needed any more
        self._left_behind: list[RegisteredDnn] = []  # a thread may use them until the process ends
        self.preloaded = threading.Event()  # no loading is under way
        self.preloaded.set()
        self._urgent = urgent
        nicely = partial(lower_priority, POOL_NICE)
        self._cpu = Workers("cpu", cpu_workers, in_background if urgent else nicely, clock)
        self._only = Workers("cpu-only", cpu_workers, lambda: _for_the_only_place(urgent), clock)
        self._by_id = {
            GPU: Workers("gpu", 1, first_in_line if urgent else None, clock),
            CPU: self._cpu,
            REMOTE: Workers("remote", SERVER.lanes, nicely, clock),
        }
        self._pool, self._watch_ns = Pool(2, nicely, clock), 0
        # Short work that a job waits for at each of its fallback ops: not behind whole pictures.
        self._fallback = Workers("fallback", 1, second_in_line if urgent else None, clock)
        self._prober, self._engines = Prober(inbox), engines
        self.requests = Requests(inbox, self._serve)
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: self._on_prepare,
            RunChunk: self._on_run_chunk,
            Yield: self._on_yield,
            RunTogether: self._on_run_together,
            RunFallback: self._on_run_fallback,
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
    ) -> None:
        """A DNN of an app, whose actions will come. ``newest`` gives the frame of a job that
        begins; ``renew`` hears of each result in the pool, before the inbox does."""
        frames = Frames(deployment, newest, renew, self._measure, self._pool.shared)
        self._host(name, deployment.name, deployment, frames)

    def _serve(self, name: str, networks: Networks) -> None:
        """A model that answers requests. From any thread."""
        self._host(name, name, networks, self.requests)

    def _host(self, name: str, own: str, networks: Networks, client: Client) -> None:
        """``own``: what messages call it."""
        self._use(name)
        self._registered[name] = RegisteredDnn(own, networks, client, partial(self._report, name))

    def remove(self, names: Iterable[str]) -> bool:
        """DNNs that have been dropped, or models whose clients are told so: returns when no thread
        works for them any more. False: one still does, after ``DRAIN_S``; then their networks are
        kept as they are."""
        names = list(names)
        self.requests.leave(names)
        self._leaving.update(names)
        ended = self._drain()
        self._leaving.difference_update(names)
        for name in names:
            self._forget(name)
            if ended:
                self._registered.pop(name, None)
            else:  # what a thread may look up stays, until a DNN of that name is added
                self._registered[name].networks.in_use = True
                self._left_behind.append(self._registered[name])
        return ended

    @property
    def _workers(self) -> list[Workers]:
        return [
            *self._by_id.values(),
            self._only,
            self._fallback,
            *self._pool.workers,
            self.requests.workers,
        ]

    def _drain(self) -> bool:
        """True if all threads have done what they were given, within ``DRAIN_S`` altogether."""
        until_s = time.monotonic() + DRAIN_S
        return all(workers.drain(max(0.0, until_s - time.monotonic())) for workers in self._workers)

    def ask(self, name: str, options: Mapping[str, Any]) -> None:
        """The options of the next job of an app's DNN."""
        client = self._registered[name].client
        assert isinstance(client, Frames)
        client.options = options

    def watch(self) -> None:
        """Give up what hangs: another thread takes its place, its DNN and users are told, and what
        it brings later is not used. At every frame."""
        now_ns = self._clock()
        if now_ns < self._watch_ns:
            return
        self._watch_ns = now_ns + WATCH_NS
        for workers in self._workers:
            workers.give_up_overdue()

    def execute(self, actions: Sequence[Action]) -> None:
        """Dispatch ``actions``; none of them blocks."""
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
                self._report(name, "loading on the CPU", error)
            left.discard(name)
            if not left:
                self.preloaded.set()

        for name in names:
            failed = partial(over, name)
            self._cpu.submit(self._preload, name, over, bound_s=LOADING_S, failed=failed)

    def _preload(self, name: str, over: Callable[[str], None]) -> None:
        self._preload_one(name)
        over(name)

    def _preload_one(self, name: str) -> None:
        registered = self._registered.get(name)
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
        self._prober.close()
        self.requests.close()
        for run in tuple(self._runs.values()):
            run.registered.client.workers.submit(run.give_up, "the session was closed")
        until_s = time.monotonic() + CLOSING_S
        for workers in self._workers:
            workers.close(max(0.0, until_s - time.monotonic()))

    # --- main thread -----------------------------------------------------------------

    def _on_prepare(self, action: Prepare) -> None:
        if action.stage == 0:
            self._end(action.job)  # where it begins anew: what it had is not read any more
            registered = self._registered[action.dnn]
            self._runs[action.job] = registered.client.begin(action, registered, self._clock())
        if self._runs[action.job].prepared:
            self._inbox.put(InputReady(action.job))
        else:
            self._in_pool("preprocess", self._prepare, action, self._runs[action.job])

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
        if isinstance(error, OverdueError) and run is not None:
            run.abandon()
        self._failed(action.job, action.dnn, step, error)

    def _end(self, job: int) -> RunningJob | None:
        run = self._runs.pop(job, None)
        if run is not None:
            run.end()
        return run

    def _on_run_chunk(self, action: RunChunk) -> None:
        self._yielding = _NO_JOB
        losses = self._prober.losses(action.processor)
        only = action.processor == CPU and not self._registered[action.dnn].networks.built
        workers = self._only if only else self._workers_of(action.processor)
        self._submit(workers, self._run_chunk, action, losses, [action])

    def _on_run_together(self, action: RunTogether) -> None:
        self._yielding = _NO_JOB
        losses = self._prober.losses(action.processor)
        workers = self._workers_of(action.processor)
        self._submit(workers, self._run_together, action, losses, chunks_of(action))

    def _submit(
        self,
        workers: Workers,
        call: Callable[[Any, int], None],
        action: RunChunk | RunTogether,
        losses: int,
        chunks: Sequence[RunChunk],
    ) -> None:
        least_s = CPU_HANGING_S if action.processor == CPU else HANGING_S
        bound_s = max(least_s, TIMES_EXPECTED * action.expected_ns / 1e9)
        failed = partial(self._chunks_failed, chunks, losses)
        workers.submit(call, action, losses, bound_s=bound_s, failed=failed)

    def _chunks_failed(self, chunks: Sequence[RunChunk], losses: int, error: BaseException) -> None:
        """Where a thread hangs with them its processor is given up until it runs their networks
        again; requests go on elsewhere. What nobody had expected is their fault."""
        if not isinstance(error, OverdueError):
            for chunk in chunks:
                self._not_run(chunk, error, losses)
            return
        for chunk in chunks:
            self._report(chunk.dnn, f"{chunk.processor} inference", error)
            run = self._runs.get(chunk.job)
            if run is None:
                continue
            if run.patient:
                self._runs[chunk.job] = run.afresh()
            run.abandon()
        self._lose(chunks[0].processor, self._registered[chunks[0].dnn].networks)

    def _on_run_fallback(self, action: RunFallback) -> None:
        failed = partial(self._step_failed, "fallback op", action, self._runs.get(action.job))
        self._fallback.submit(self._run_fallback, action, bound_s=HANGING_S, failed=failed)

    def _workers_of(self, processor: str) -> Workers:
        """The workers that run the processor's chunks."""
        if processor not in self._by_id:
            self._by_id[processor] = Workers(processor, clock=self._clock)
        return self._by_id[processor]

    def _on_move(self, action: Move) -> None:
        # To the CPU: behind what it loads and runs now, as the jobs that follow would be.
        if action.processor == CPU or not self._registered[action.dnn].networks.has(
            action.processor
        ):
            failed = partial(self._not_moved, action)
            self._cpu.submit(self._move, action, bound_s=LOADING_S, failed=failed)
        else:
            self._moved(action, self._clock())

    def _on_yield(self, action: Yield) -> None:
        self._yielding = action.job

    def _on_finish(self, action: Finish) -> None:
        run = self._runs.pop(action.job)
        if run.patient:  # its client may take as long as it likes over its answer
            failed = partial(self._step_failed, "answer", action, run)
            run.registered.client.workers.submit(self._finish, action, run, failed=failed)
        else:
            self._in_pool("decode", self._finish, action, run)

    def _on_drop(self, action: Drop) -> None:
        run, registered = self._end(action.job), self._registered.get(action.dnn)
        if registered is not None:
            registered.client.dropped(action, run)

    # --- pool ------------------------------------------------------------------------

    def _prepare(self, action: Prepare, run: RunningJob) -> None:
        if self._runs.get(action.job) is not run:  # dropped meanwhile
            return
        start_ns = self._clock()
        tasks, difference = run.prepare(action.stage)
        if run.abandoned:
            return
        self._span(Lane.POOL, f"{action.dnn} preprocess", start_ns, stage=action.stage)
        frame = run.frame.sequence if run.frame is not None and action.stage == 0 else None
        self._inbox.put(InputReady(action.job, tasks, difference, frame))

    def _run_fallback(self, action: RunFallback) -> None:
        start_ns, run = self._clock(), self._runs.get(action.job)
        end_op, elapsed_ns = self._compute(action, GPU, lambda where: where.run(action.end_op))
        if run is not None and run.abandoned:
            return
        self._span(Lane.POOL, f"{action.dnn} fallback", start_ns, start=action.start_op, end=end_op)
        self._inbox.put(FallbackFinished(action.job, end_op, elapsed_ns))

    def _finish(self, action: Finish, run: RunningJob) -> None:
        start_ns = self._clock()
        value = self._decoded(action, run)
        if run.abandoned or value is _NOT_READ:
            return
        self._span(Lane.POOL, f"{action.dnn} decode", start_ns)
        decoded_ns = self._clock()
        self._inbox.put(Result(action.dnn, value, run.frame, action, run.requested_ns, decoded_ns))

    def _decoded(self, action: Finish, run: RunningJob) -> Any:
        """The job's result, or _NOT_READ where the processor does not give it."""
        try:
            run.read_last()
        except Exception as error:
            run.give_up(f"its outputs cannot be read: {say(error)}")
            self._failed(action.job, action.dnn, "reading outputs", error)
            self._count_failure(action.processor, run)
            return _NOT_READ
        finally:
            run.end()
        return run.result()

    # --- workers of processors ---------------------------------------------------------

    def _run_chunk(self, action: RunChunk, losses: int) -> None:
        """``losses``: how often the processor had been lost when that was decided."""
        start_ns = self._clock()
        try:
            end_op, elapsed_ns = self._tried(action, losses)
        except Exception as error:  # engines raise what their drivers do
            self._not_run(action, error, losses)
            return
        if losses != self._prober.losses(action.processor):
            return  # lost meanwhile: the job has been put back, and may run elsewhere by now
        if action.processor == GPU:
            self._gpu_failures = 0
        self._span(
            action.processor,
            action.dnn,
            start_ns,
            end_ns=start_ns + elapsed_ns,
            ops=f"{action.start_op}-{end_op}",
            planned_end=action.end_op,
            stage=action.stage,
            task=action.task,
            reason=action.reason,
            expected_ms=action.expected_ns / 1e6,
        )
        self._inbox.put(
            ChunkFinished(action.job, action.processor, action.start_op, end_op, elapsed_ns)
        )

    def _tried(self, action: RunChunk, losses: int) -> tuple[int, int]:
        """Run it, once more where its client would rather wait than lose it."""
        parts, run = partial(self._run_parts, action, losses), self._runs.get(action.job)
        try:
            return self._compute(action, action.processor, parts)
        except ModelError:
            raise
        except Exception as error:
            if run is None or not run.patient or run.abandoned:
                raise
            self._report(action.dnn, f"{action.processor} inference, tried again", error)
            return self._compute(action, action.processor, parts)

    def _run_parts(self, action: RunChunk, losses: int, where: Placement) -> int:
        pace = self._registered[action.dnn].parts(action.stage).pace(action, self._clock)

        def go_on(part: int) -> bool:
            wanted = losses == self._prober.losses(action.processor)
            return wanted and self._yielding != action.job and pace.go_on(part)

        return where.run_parts(pace.ends, go_on)

    def _compute(
        self, action: RunChunk | RunFallback, processor: str, run: Callable[[Placement], int]
    ) -> tuple[int, int]:
        """The op before which it stopped, and how long it took, with what it took to get its
        tensors there; all of it and no time where the job was dropped meanwhile."""
        began_ns = self._clock()
        with self._at(action, processor) as where:
            if where is None:
                return action.end_op, 0
            brought_ns = self._clock() - began_ns
            ran_ns = run(where)
            return where.unit, brought_ns + ran_ns

    def _at(
        self, action: RunChunk | RunFallback, processor: str
    ) -> AbstractContextManager[Placement | None]:
        run = self._runs.get(action.job)
        return contextlib.nullcontext() if run is None else run.at(action, processor)

    def _run_together(self, action: RunTogether, losses: int) -> None:
        """All its jobs at once. Where that fails each runs by itself, so that only one that cannot
        is lost for it."""
        start_ns, chunks = self._clock(), chunks_of(action)
        try:
            elapsed_ns = launch(action, self._engines[action.processor], self._at)
        except Exception as error:
            self._fault("", f"not run together: {say(error)}", error)
            for chunk in chunks:
                self._run_chunk(chunk, losses)
            return
        if losses != self._prober.losses(action.processor):
            return  # lost meanwhile: its jobs have been put back
        for row, chunk in enumerate(chunks):
            self._span(
                action.processor,
                chunk.dnn,
                start_ns,
                start_ns + elapsed_ns,
                ops=f"{chunk.start_op}-{chunk.end_op}",
                together=[other.dnn for other in chunks],
                row=row,
                reason=action.reason,
                expected_ms=action.expected_ns / 1e6,
            )
        for chunk in chunks:
            self._inbox.put(
                ChunkFinished(chunk.job, chunk.processor, chunk.start_op, chunk.end_op, elapsed_ns)
            )

    def _move(self, action: Move) -> None:
        start_ns = self._clock()
        self._registered[action.dnn].networks.load(action.processor)
        self._moved(action, start_ns)

    def _not_moved(self, action: Move, error: BaseException) -> None:
        self._report(action.dnn, f"move to {action.processor}", error)
        self._inbox.put(DnnMoved(action.dnn, self._registered[action.dnn].processor))

    def _moved(self, action: Move, start_ns: int) -> None:
        self._registered[action.dnn].processor = action.processor
        self._span(
            Lane.CPU, f"{action.dnn} moves to {action.processor}", start_ns, reason=action.reason
        )
        self._inbox.put(DnnMoved(action.dnn, action.processor))

    # --- failures and trace ------------------------------------------------------------

    def _not_run(self, action: RunChunk, error: BaseException, losses: int) -> None:
        """A job fails where it is to blame, and where its client would rather have the next one.
        Else its processor is lost, and the coordinator puts it back; one that has already cost us a
        processor is not tried there again."""
        processor, run = action.processor, self._runs.get(action.job)
        if losses != self._prober.losses(processor):
            return  # lost meanwhile: the job has been put back, and may run elsewhere by now
        if processor == REMOTE and isinstance(error, DeviceError):
            self._fault("", f"{error}: its DNNs run here until it answers again")
            self._lose(processor, self._registered[action.dnn].networks)
            return
        step = f"{processor} inference"
        to_blame = isinstance(error, ModelError)
        if run is None or to_blame or not run.patient or processor in run.failed_on:
            self._failed(action.job, action.dnn, step, error)
            if run is not None and not to_blame:
                self._count_failure(processor, run)
            return
        run.failed_on.add(processor)
        self._report(action.dnn, step, error)
        self._lose(processor, run.registered.networks)

    def _count_failure(self, processor: str, run: RunningJob) -> None:
        """A frame's job is soon followed by another: only when the GPU fails again and again is it
        given up."""
        if processor != GPU or run.patient:
            return
        self._gpu_failures += 1
        if self._gpu_failures == GPU_FAILURES_UNTIL_LOST:
            self._fault("", "the GPU failed repeatedly: its DNNs move to the CPU")
            self._lose(GPU, run.registered.networks)

    def _lose(self, processor: str, networks: Networks) -> None:
        """Until it runs what it has failed with."""

        def probe() -> None:
            networks.try_out(processor)
            if processor == GPU:
                self._gpu_failures = 0

        self._prober.lose(processor, probe)

    def _failed(self, job: int, dnn: str, step: str, error: BaseException) -> None:
        self._report(dnn, step, error)
        self._inbox.put(JobFailed(job, f"{step}: {say(error)}"))

    def _report(self, dnn: str, step: str, error: BaseException) -> None:
        registered = self._registered.get(dnn)
        own = dnn if registered is None else registered.name  # as its app calls it
        self._fault(dnn, f"{own}: {step} failed: {say(error)}", error)

    def _span(
        self, lane: str, name: str, start_ns: int, end_ns: int | None = None, **details: Any
    ) -> None:
        if self._spans:
            self._spans.span(lane, name, start_ns, end_ns or self._clock(), details)


def _for_the_only_place(urgent: bool) -> None:
    """For DNNs that run on the CPU because they can run nowhere else: what is left of a core may be
    nothing for seconds, while recording, say. A GPU that is made of cores has time for them,
    as it only draws, but for those compilers that take what all others leave."""
    lower_priority(_NICE_ONLY)
    if urgent:
        on_any_core()
