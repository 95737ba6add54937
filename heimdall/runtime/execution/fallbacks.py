"""Fallback ops, on a thread of their own: short work that a job waits for many times, and that is
not to wait behind whole pictures.

What follows a chunk that ends at a fallback op is known before it is decided. So the thread that
ran the chunk hands the op on at once, while the main thread hears of the chunk, or still draws a
frame. Where the coordinator decides otherwise, what came of it is of no use, and nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from heimdall.runtime.execution.ledger import Ledger
from heimdall.runtime.execution.pool import HANGING_S
from heimdall.runtime.execution.runs import Ahead, RunningJob
from heimdall.runtime.execution.unit_network import Placement
from heimdall.system.priority import second_in_line
from heimdall.system.workers import Workers
from heimdall.vocabulary.enums import Lane
from heimdall.vocabulary.events import FallbackFinished, RunChunk, RunFallback
from heimdall.vocabulary.processors import GPU

Failed = Callable[[RunFallback, RunningJob | None, BaseException], None]


class FallbackRunner:
    """``failed`` hears of what went wrong with an op that was asked for."""

    def __init__(self, ledger: Ledger, failed: Failed, urgent: bool) -> None:
        self._ledger, self._failed = ledger, failed
        self.workers = Workers("fallback", 1, second_in_line if urgent else None, ledger.clock)

    def run(self, action: RunFallback) -> None:
        """Have it run, unless it does already. For the main thread."""
        run = self._ledger.runs.get(action.job)
        ahead = run.ahead if run is not None else None
        if ahead is None or ahead.action != action:
            ahead = self._begin(action, run)
        ahead.result.add_done_callback(partial(self._over, action, run))

    def follow(self, chunk: RunChunk, end_op: int) -> None:
        """Begin what follows a chunk that has ended before unit ``end_op``, if that is a fallback
        op. For the chunk's thread, before it tells that the chunk has ended."""
        run = self._ledger.runs.get(chunk.job)
        plan = self._ledger.registered[chunk.dnn].networks.stages[chunk.stage]
        left = plan.fallback[end_op:]
        if chunk.processor != GPU or run is None or plan.exits or not any(left[:1]):
            return
        ops = left.index(False) if False in left else len(left)
        following = RunFallback(chunk.job, chunk.dnn, chunk.stage, chunk.task, end_op, end_op + ops)
        run.ahead = self._begin(following, run)

    def _begin(self, action: RunFallback, run: RunningJob | None) -> Ahead:
        return Ahead(action, self.workers.ask(self._run, action, run, bound_s=HANGING_S))

    def _run(self, action: RunFallback, run: RunningJob | None) -> int:
        start_ns = self._ledger.clock()
        call = partial(_up_to, action.end_op)
        _, brought_ns, ran_ns = self._ledger.compute(action, run, GPU, call)
        if run is not None and not run.abandoned:
            name = f"{action.dnn} fallback"
            self._ledger.span(Lane.POOL, name, start_ns, start=action.start_op, end=action.end_op)
        return brought_ns + ran_ns

    def _over(self, action: RunFallback, run: RunningJob | None, done: Future[int]) -> None:
        error = done.exception()
        if error is not None:
            self._failed(action, run, error)
        elif run is None or not run.abandoned:
            self._ledger.inbox.put(FallbackFinished(action.job, action.end_op, done.result()))


def _up_to(unit: int, where: Placement) -> tuple[int, int]:
    return 0, where.run(unit)
