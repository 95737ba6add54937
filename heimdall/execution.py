"""What the coordinator's actions become: work for the GPU worker, the CPU worker and the pool.

Workers touch neither the coordinator nor GL; they post events (and decoded results) to the
inbox that the main thread reads.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heimdall.coordinator.events import (
    CPU,
    GPU,
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
    ProcessorLost,
    RunChunk,
    RunFallback,
)
from heimdall.engine.checks import check_inputs
from heimdall.errors import AppError
from heimdall.faults import Faults, say
from heimdall.models.base import Prepared
from heimdall.models.luminance import luminance_difference, luminance_grid
from heimdall.softgpu import first_in_line, in_background, lower_priority
from heimdall.workers import Workers

if TYPE_CHECKING:
    import numpy as np

    from heimdall.capture import Frame
    from heimdall.deployment import Deployment
    from heimdall.spans import Spans


GPU_FAILURES_UNTIL_LOST = 3
APP_FAILURES = (Exception, SystemExit)  # a thread that exits would take the pool with it


@dataclass(frozen=True)
class Result:
    """A decoded result on its way to ``App.on_result``."""

    dnn: str
    value: Any
    frame: Frame
    finish: Finish
    requested_ns: int
    decoded_ns: int


@dataclass
class _Run:
    """One job in flight: its frame, and what its stages have produced so far."""

    dnn: str
    frame: Frame
    options: Mapping[str, Any]
    requested_ns: int
    tasks: list[Prepared] = field(default_factory=list)
    outputs: dict[int, Mapping[str, np.ndarray]] = field(default_factory=dict)
    results: list[list[Any]] = field(default_factory=list)


class Executor:
    """Carries out actions on worker threads. ``execute`` is called on the main thread only."""

    def __init__(
        self,
        deployments: Mapping[str, Deployment],
        newest: Callable[[], Frame],
        inbox: queue.SimpleQueue[Event | Result],
        spans: Spans | None = None,
        renew: Callable[[str, Any, Frame], None] = lambda dnn, value, frame: None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """``renew`` hears of each result in the pool, before the inbox does."""
        self._renew = renew
        self._clock = clock
        self._deployments = deployments
        self._newest = newest
        self._inbox = inbox
        self._spans = spans
        self._runs: dict[int, _Run] = {}
        self._grids: dict[str, np.ndarray] = {}
        self._gpu_failures = 0
        self.options: dict[str, Mapping[str, Any]] = {}  # of each DNN's newest request
        self._faults = Faults()
        self.preloaded = threading.Event()  # no loading is under way
        self.preloaded.set()
        self._gpu = Workers("gpu", urgency=first_in_line)
        self._cpu = Workers("cpu", urgency=in_background)
        self._pool = Workers("pool", count=2, urgency=lambda: lower_priority(5))
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: self._on_prepare,
            RunChunk: self._on_run_chunk,
            RunFallback: lambda action: self._pool.submit(self._run_fallback, action),
            Move: lambda action: self._cpu.submit(self._move, action),
            Finish: self._on_finish,
            Drop: self._on_drop,
        }

    def execute(self, actions: Sequence[Action]) -> None:
        """Dispatch ``actions``; none of them blocks."""
        for action in actions:
            self._handlers[type(action)](action)

    def preload(self) -> None:
        """Load all DNNs on the CPU too, in the background: loading holds the interpreter lock
        for tens of ms, which frames feel. ``preloaded`` is set when that is over."""
        self.preloaded.clear()
        for deployment in self._deployments.values():
            self._cpu.submit(deployment.load, CPU)
        self._cpu.submit(self.preloaded.set)

    def close(self) -> None:
        """Wait for what is running, then end the threads."""
        for workers in (self._gpu, self._cpu, self._pool):
            workers.close()

    # --- main thread -----------------------------------------------------------------

    def _on_prepare(self, action: Prepare) -> None:
        if action.stage == 0:
            options = self.options.get(action.dnn, {})
            now_ns = self._clock()
            self._runs[action.job] = _Run(action.dnn, self._newest(), options, now_ns)
        self._pool.submit(self._prepare, action)

    def _on_run_chunk(self, action: RunChunk) -> None:
        worker = self._gpu if action.processor == GPU else self._cpu
        worker.submit(self._run_chunk, action)

    def _on_finish(self, action: Finish) -> None:
        run = self._runs.pop(action.job)
        self._pool.submit(self._finish, action, run)

    def _on_drop(self, action: Drop) -> None:
        self._runs.pop(action.job, None)

    # --- pool ------------------------------------------------------------------------

    def _prepare(self, action: Prepare) -> None:
        run = self._runs.get(action.job)
        if run is None:  # dropped meanwhile
            return
        pipeline = self._deployments[action.dnn].pipeline
        start_ns = self._clock()
        try:
            difference = 0.0
            if action.stage == 0:
                difference = self._luminance(action.dnn, run.frame.image)
                previous: list[Any] = []
            else:
                previous = self._decode_stage(run)
            run.tasks = pipeline.prepare(action.stage, run.frame.image, previous, run.options)
            self._check(action, run.tasks)
            run.outputs = {}
        except APP_FAILURES as error:
            self._failed(action.job, action.dnn, "preprocess", error)
            return
        self._span("pool", f"{action.dnn} preprocess", start_ns, stage=action.stage)
        self._inbox.put(InputReady(action.job, len(run.tasks), difference))

    def _check(self, action: Prepare, tasks: Sequence[Prepared]) -> None:
        """Tensors that do not fit are the app's fault, and must not count as the GPU's."""
        if action.stage == 0 and len(tasks) != 1:
            raise AppError(f"stage 0 must be given exactly one task, not {len(tasks)}")
        graph = self._deployments[action.dnn].graphs[action.stage]
        for task in tasks:
            check_inputs(graph, task.inputs)

    def _luminance(self, dnn: str, image: np.ndarray) -> float:
        grid = luminance_grid(image)
        last = self._grids.get(dnn)
        self._grids[dnn] = grid
        return 0.0 if last is None else luminance_difference(grid, last)

    def _decode_stage(self, run: _Run) -> list[Any]:
        pipeline = self._deployments[run.dnn].pipeline
        stage = len(run.results)
        results = [
            pipeline.decode(stage, run.outputs[task], prepared.context)
            for task, prepared in enumerate(run.tasks)
        ]
        run.results.append(results)
        return results

    def _run_fallback(self, action: RunFallback) -> None:
        start_ns = self._clock()
        try:
            self._run_range(action, GPU, fallback=True)
        except Exception as error:
            self._failed(action.job, action.dnn, "fallback op", error)
            return
        elapsed_ns = self._clock() - start_ns
        self._span(
            "pool", f"{action.dnn} fallback", start_ns, start=action.start_op, end=action.end_op
        )
        self._inbox.put(FallbackFinished(action.job, action.end_op, elapsed_ns))

    def _finish(self, action: Finish, run: _Run) -> None:
        start_ns = self._clock()
        try:
            self._decode_stage(run)
            value = self._deployments[run.dnn].pipeline.combine(run.results, run.frame.image)
            self._renew(run.dnn, value, run.frame)
        except APP_FAILURES as error:
            self._failed(action.job, action.dnn, "decode", error)
            return
        self._span("pool", f"{action.dnn} decode", start_ns)
        self._inbox.put(Result(run.dnn, value, run.frame, action, run.requested_ns, self._clock()))

    # --- GPU and CPU workers -----------------------------------------------------------

    def _run_chunk(self, action: RunChunk) -> None:
        start_ns = self._clock()
        try:
            self._run_range(action, action.processor)
        except Exception as error:
            self._failed(action.job, action.dnn, f"{action.processor} inference", error)
            if action.processor == GPU:
                self._count_gpu_failure()
            return
        elapsed_ns = self._clock() - start_ns
        if action.processor == GPU:
            self._gpu_failures = 0
        self._span(
            action.processor,
            action.dnn,
            start_ns,
            ops=f"{action.start_op}-{action.end_op}",
            stage=action.stage,
            task=action.task,
            reason=action.reason,
            expected_ms=action.expected_ns / 1e6,
        )
        self._inbox.put(
            ChunkFinished(action.job, action.processor, action.start_op, action.end_op, elapsed_ns)
        )

    def _run_range(
        self, action: RunChunk | RunFallback, processor: str, fallback: bool = False
    ) -> None:
        """Run a range of ops, with the input copied in before the first and the output out
        after the last."""
        run = self._runs.get(action.job)
        if run is None:  # dropped meanwhile
            return
        network, state = self._deployments[action.dnn].network(action.stage, processor)
        end = len(network.ops) if processor == CPU else action.end_op
        if action.start_op == 0:
            network.write(state, run.tasks[action.task].inputs)
        (network.run_fallback if fallback else network.run)(state, action.start_op, end)
        if end == len(network.ops):
            run.outputs[action.task] = network.read(state)

    def _move(self, action: Move) -> None:
        start_ns = self._clock()
        try:
            self._deployments[action.dnn].load(action.processor)
        except Exception as error:
            self._report(action.dnn, f"move to {action.processor}", error)
            stays = GPU if action.processor == CPU else CPU
            self._inbox.put(DnnMoved(action.dnn, stays))
            return
        self._span(
            "cpu", f"{action.dnn} moves to {action.processor}", start_ns, reason=action.reason
        )
        self._inbox.put(DnnMoved(action.dnn, action.processor))

    # --- failures and trace ------------------------------------------------------------

    def _count_gpu_failure(self) -> None:
        self._gpu_failures += 1
        if self._gpu_failures == GPU_FAILURES_UNTIL_LOST:
            self._faults.report("the GPU failed repeatedly: its DNNs move to the CPU")
            self._inbox.put(ProcessorLost(GPU))

    @property
    def errors(self) -> list[str]:
        """What has failed, each message once."""
        return self._faults.messages

    @property
    def message(self) -> str:
        """The newest failure, for the overlay."""
        return self._faults.newest

    def _failed(self, job: int, dnn: str, step: str, error: BaseException) -> None:
        self._report(dnn, step, error)
        self._inbox.put(JobFailed(job, f"{step}: {say(error)}"))

    def _report(self, dnn: str, step: str, error: BaseException) -> None:
        self._faults.report(f"{dnn}: {step} failed: {say(error)}", error)

    def _span(self, lane: str, name: str, start_ns: int, **details: Any) -> None:
        if self._spans:
            self._spans.span(lane, name, start_ns, self._clock(), details)
