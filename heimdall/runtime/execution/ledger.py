"""What the parts of an executor share: the DNNs, the jobs in flight, and how anything is told."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from heimdall.runtime.execution.runs import RegisteredDnn, Result, RunningJob
from heimdall.runtime.execution.unit_network import Placement
from heimdall.system.faults import SharedFallible, say
from heimdall.vocabulary.events import Event, JobFailed, RunChunk, RunFallback

if TYPE_CHECKING:
    from heimdall.runtime.telemetry.spans import Spans

# What workers report; and what another thread leaves to the main one.
Message = Event | Result | partial[None]


class Ledger(SharedFallible):
    """``registered``: DNNs by name; ``runs``: jobs in flight by number. Workers report to
    ``inbox``."""

    def __init__(
        self, inbox: queue.SimpleQueue[Message], spans: Spans | None, clock: Callable[[], int]
    ) -> None:
        super().__init__()
        self.inbox, self.clock, self._spans = inbox, clock, spans
        self.registered: dict[str, RegisteredDnn] = {}
        self.runs: dict[int, RunningJob] = {}

    def compute(
        self,
        action: RunChunk | RunFallback,
        run: RunningJob | None,
        processor: str,
        call: Callable[[Placement], tuple[int, int]],
    ) -> tuple[int, int, int]:
        """The op of job ``run`` before which it stopped, and how long it took, on the processor
        (with what it took to get its tensors there) and off it; all of it and no time where the job
        was dropped meanwhile."""
        began_ns = self.clock()
        with _at(run, action, processor) as where:
            if where is None:
                return action.end_op, 0, 0
            brought_ns = self.clock() - began_ns
            on_ns, off_ns = call(where)
            return where.unit, brought_ns + on_ns, off_ns

    def at(self, action: RunChunk, processor: str) -> AbstractContextManager[Placement | None]:
        """A job's tensors on a processor; None where it was dropped."""
        return _at(self.runs.get(action.job), action, processor)

    def failed(self, job: int, dnn: str, step: str, error: BaseException) -> None:
        """A job has failed."""
        self.report(dnn, step, error)
        self.inbox.put(JobFailed(job, f"{step}: {say(error)}"))

    def report(self, dnn: str, step: str, error: BaseException) -> None:
        """Something has failed for a DNN."""
        registered = self.registered.get(dnn)
        own = dnn if registered is None else registered.name  # as its app calls it
        self._fault(dnn, f"{own}: {step} failed: {say(error)}", error)

    def report_all(self, message: str, error: BaseException | None = None) -> None:
        """Something has failed that concerns all."""
        self._fault("", message, error)

    def span(
        self, lane: str, name: str, start_ns: int, end_ns: int | None = None, **details: Any
    ) -> None:
        """Note for the trace what was done, until now where ``end_ns`` is not given."""
        if self._spans:
            self._spans.span(lane, name, start_ns, end_ns or self.clock(), details)


def _at(
    run: RunningJob | None, action: RunChunk | RunFallback, processor: str
) -> AbstractContextManager[Placement | None]:
    return contextlib.nullcontext() if run is None else run.at(action, processor)
