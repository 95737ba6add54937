"""Chunks on processors: run, tried again, given up; and processors that are lost for it.

A chunk that does not come back holds a thread. Its processor is given up until it runs the same
networks again, and another thread is there by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from heimdall.errors import DeviceError, ModelError
from heimdall.runtime.execution.deployment import Networks
from heimdall.runtime.execution.ledger import Ledger
from heimdall.runtime.execution.pool import HANGING_S
from heimdall.runtime.execution.prober import Prober
from heimdall.runtime.execution.runs import RunningJob
from heimdall.runtime.execution.together import chunks_of, launch
from heimdall.runtime.execution.unit_network import Placement
from heimdall.system.faults import say
from heimdall.system.priority import first_in_line, lower_priority, on_any_core
from heimdall.system.workers import OverdueError, Workers
from heimdall.vocabulary.events import ChunkFinished, RunChunk, RunTogether
from heimdall.vocabulary.processors import CPU, GPU, REMOTE, SERVER

if TYPE_CHECKING:
    from heimdall.engine.base import Engine

GPU_FAILURES_UNTIL_LOST = 3
# A chunk hangs when it has taken so many times what was expected, and so long. The CPU's run behind
# all others, and wait for a core like other programs.
TIMES_EXPECTED, CPU_HANGING_S = 20, 10.0
NO_JOB = -1
_NICE_ONLY = 10  # behind all that feeds frames, and before compilers


class ChunkRunner:
    """The workers of all processors. ``run``, ``run_together`` and ``yields`` are for the main
    thread.

    ``cpu``: the CPU's workers, which load networks too. ``nicely`` sets the priority of threads
    that others go before; ``follow(chunk, end_op)`` begins what comes behind one, without asking.
    """

    def __init__(
        self,
        ledger: Ledger,
        engines: Mapping[str, Engine],
        cpu: Workers,
        cpu_workers: int,
        nicely: Callable[[], None],
        urgent: bool,
        follow: Callable[[RunChunk, int], None],
    ) -> None:
        self._ledger, self._engines, self._follow = ledger, engines, follow
        self.prober = Prober(ledger.inbox)
        self._yielding = NO_JOB  # its chunk on the GPU ends as soon as it may
        self._gpu_failures = 0
        clock = ledger.clock
        self._only = Workers("cpu-only", cpu_workers, lambda: _for_the_only_place(urgent), clock)
        self._by_id = {
            GPU: Workers("gpu", 1, first_in_line if urgent else None, clock),
            CPU: cpu,
            REMOTE: Workers("remote", SERVER.lanes, nicely, clock),
        }

    @property
    def workers(self) -> list[Workers]:
        """All threads."""
        return [*self._by_id.values(), self._only]

    def run(self, action: RunChunk) -> None:
        """Begin a chunk."""
        self._forget_yield([action])
        losses = self.prober.losses(action.processor)
        only = action.processor == CPU and not self._ledger.registered[action.dnn].networks.built
        workers = self._only if only else self._workers_of(action.processor)
        self._submit(workers, self._run_chunk, action, losses, [action])

    def run_together(self, action: RunTogether) -> None:
        """Begin chunks of several jobs at once."""
        chunks = chunks_of(action)
        self._forget_yield(chunks)
        losses = self.prober.losses(action.processor)
        workers = self._workers_of(action.processor)
        self._submit(workers, self._run_together, action, losses, chunks)

    def _forget_yield(self, chunks: Sequence[RunChunk]) -> None:
        """A job that was to yield has: a chunk of another one, on the CPU maybe, says nothing."""
        if any(chunk.job == self._yielding for chunk in chunks):
            self._yielding = NO_JOB

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
        failed = partial(self._worker_failed, chunks, losses)
        workers.submit(call, action, losses, bound_s=bound_s, failed=failed)

    def _worker_failed(self, chunks: Sequence[RunChunk], losses: int, error: BaseException) -> None:
        """Where a thread hangs with them its processor is given up until it runs their networks
        again; requests go on elsewhere. What nobody had expected is their fault."""
        if not isinstance(error, OverdueError):
            for chunk in chunks:
                self._not_run(chunk, error, losses)
            return
        for chunk in chunks:
            self._ledger.report(chunk.dnn, f"{chunk.processor} inference", error)
            run = self._ledger.runs.get(chunk.job)
            if run is None:
                continue
            if run.patient:
                self._ledger.runs[chunk.job] = run.afresh()
            run.abandon()
        self._lose(chunks[0].processor, self._ledger.registered[chunks[0].dnn].networks)

    def yields(self, job: int) -> None:
        """Its chunk on the GPU ends as soon as it may."""
        self._yielding = job

    def _workers_of(self, processor: str) -> Workers:
        """The workers that run the processor's chunks."""
        if processor not in self._by_id:
            self._by_id[processor] = Workers(processor, clock=self._ledger.clock)
        return self._by_id[processor]

    # --- workers of processors ---------------------------------------------------------

    def _run_chunk(self, action: RunChunk, losses: int) -> None:
        """``losses``: how often the processor had been lost when that was decided."""
        start_ns = self._ledger.clock()
        try:
            end_op, elapsed_ns, off_ns = self._tried(action, losses)
        except Exception as error:  # engines raise what their drivers do
            self._not_run(action, error, losses)
            return
        if losses != self.prober.losses(action.processor):
            return  # lost meanwhile: the job has been put back, and may run elsewhere by now
        if action.processor == GPU:
            self._gpu_failures = 0
        self._follow(action, end_op)
        self._ledger.span(
            action.processor,
            action.dnn,
            start_ns,
            end_ns=start_ns + elapsed_ns + off_ns,
            ops=f"{action.start_op}-{end_op}",
            planned_end=action.end_op,
            stage=action.stage,
            task=action.task,
            reason=action.reason,
            expected_ms=action.expected_ns / 1e6,
        )
        self._ledger.inbox.put(
            ChunkFinished(
                action.job, action.processor, action.start_op, end_op, elapsed_ns, off_ns or None
            )
        )

    def _tried(self, action: RunChunk, losses: int) -> tuple[int, int, int]:
        """Run it, once more where its client would rather wait than lose it."""
        parts, run = partial(self._run_parts, action, losses), self._ledger.runs.get(action.job)
        try:
            return self._ledger.compute(action, run, action.processor, parts)
        except ModelError:
            raise
        except Exception as error:
            if run is None or not run.patient or run.abandoned:
                raise
            self._ledger.report(action.dnn, f"{action.processor} inference, tried again", error)
            return self._ledger.compute(action, run, action.processor, parts)

    def _run_parts(self, action: RunChunk, losses: int, where: Placement) -> tuple[int, int]:
        pace = (
            self._ledger.registered[action.dnn].parts(action.stage).pace(action, self._ledger.clock)
        )

        def go_on(part: int, ended: int) -> bool:
            wanted = losses == self.prober.losses(action.processor)
            return wanted and self._yielding != action.job and pace.go_on(part, ended)

        return where.run_parts(pace.ends, go_on)

    def _run_together(self, action: RunTogether, losses: int) -> None:
        """All its jobs at once. Where that fails each runs by itself, so that only one that cannot
        is lost for it."""
        start_ns, chunks = self._ledger.clock(), chunks_of(action)
        try:
            elapsed_ns = launch(action, self._engines[action.processor], self._ledger.at)
        except Exception as error:
            if losses != self.prober.losses(action.processor):
                return
            self._ledger.report_all(f"not run together: {say(error)}", error)
            for chunk in chunks:
                self._run_chunk(chunk, losses)
            return
        if losses != self.prober.losses(action.processor):
            return  # its jobs have been put back
        for row, chunk in enumerate(chunks):
            self._ledger.span(
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
            self._ledger.inbox.put(
                ChunkFinished(chunk.job, chunk.processor, chunk.start_op, chunk.end_op, elapsed_ns)
            )

    def _not_run(self, action: RunChunk, error: BaseException, losses: int) -> None:
        """A job fails where it is to blame, and where its client would rather have the next one.
        Else its processor is lost, and the coordinator puts it back; one that has already cost us a
        processor is not tried there again."""
        processor, run = action.processor, self._ledger.runs.get(action.job)
        if losses != self.prober.losses(processor):
            return  # lost meanwhile: the job has been put back, and may run elsewhere by now
        if processor == REMOTE and isinstance(error, DeviceError):
            self._ledger.report_all(f"{error}: its DNNs run here until it answers again")
            self._lose(processor, self._ledger.registered[action.dnn].networks)
            return
        step = f"{processor} inference"
        to_blame = isinstance(error, ModelError)
        if run is None or to_blame or not run.patient or processor in run.failed_on:
            self._ledger.failed(action.job, action.dnn, step, error)
            if run is not None and not to_blame:
                self.count_failure(processor, run)
            return
        run.failed_on.add(processor)
        self._ledger.report(action.dnn, step, error)
        self._lose(processor, run.registered.networks)

    def count_failure(self, processor: str, run: RunningJob) -> None:
        """A frame's job is soon followed by another: only when the GPU fails again and again is it
        given up."""
        if processor != GPU or run.patient:
            return
        self._gpu_failures += 1
        if self._gpu_failures == GPU_FAILURES_UNTIL_LOST:
            self._ledger.report_all("the GPU failed repeatedly: its DNNs move to the CPU")
            self._lose(GPU, run.registered.networks)

    def _lose(self, processor: str, networks: Networks) -> None:
        """Until it runs what it has failed with."""

        def probe() -> None:
            networks.try_out(processor)
            if processor == GPU:
                self._gpu_failures = 0

        self.prober.lose(processor, probe)


def _for_the_only_place(urgent: bool) -> None:
    """For DNNs that run on the CPU because they can run nowhere else: what is left of a core may be
    nothing for seconds, while recording, say. A GPU that is made of cores has time for them,
    as it only draws, but for those compilers that take what all others leave."""
    lower_priority(_NICE_ONLY)
    if urgent:
        on_any_core()
