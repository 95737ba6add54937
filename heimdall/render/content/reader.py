"""Reads files beside the frames, behind everything else on the machine, but not for ever."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import Any

from heimdall.system.priority import lower_priority
from heimdall.system.workers import Workers

PATIENCE_S = 2.0  # twice what a model takes whose shaders are compiled first
_NICE = 10
_CLOSING_S = 0.3


class _Job:
    def __init__(self, read: Callable[[], Any], finish: Callable[[], object]):
        self._read, self._finish = read, finish
        self.found: Future[Any] = Future()
        self.hurried = False

    def run(self, hurried: bool) -> None:
        """Read, unless that is done; whoever is first has it."""
        if self.found.done():
            return
        with contextlib.suppress(InvalidStateError):
            try:
                value = self._read()
                if not hurried:
                    self._finish()
            except BaseException as error:
                self.found.set_exception(error)
            else:
                self.found.set_result(value)


class Reader:
    """One file after the other, on a thread that others go before. On a machine that has no time
    for that thread, what has made no progress for ``PATIENCE_S`` is read once more, in turn with
    everything else: without privileges no thread's priority can be raised again."""

    def __init__(self) -> None:
        self._behind: Workers | None = None  # with the first file
        self._in_turn: Workers | None = None  # seldom needed
        self._closed = False
        self._jobs: list[_Job] = []
        self._since_s = 0.0  # the oldest job has been that

    def submit(
        self, read: Callable[[], Any], finish: Callable[[], object] = lambda: None
    ) -> Future[Any]:
        """Have something read, and then finish it; that is left out where there is no time."""
        job = _Job(read, finish)
        if not self._jobs:
            self._since_s = time.monotonic()
        self._jobs.append(job)
        if self._behind is None:
            self._behind = Workers("content", urgency=partial(lower_priority, _NICE))
        self._behind.submit(self._run, job, False)
        return job.found

    def _run(self, job: _Job, hurried: bool) -> None:
        if not self._closed:
            job.run(hurried)

    def end(self) -> None:
        """Read nothing more."""
        self._closed = True

    def close(self) -> None:
        """Read nothing more; what is being read is left to its thread, which then ends."""
        self.end()
        for workers in filter(None, (self._behind, self._in_turn)):
            workers.close(_CLOSING_S)

    def look(self) -> None:
        """Hurry, where that is due. Call it now and then."""
        while self._jobs and self._jobs[0].found.done():
            self._jobs.pop(0)
            self._since_s = time.monotonic()
        late = time.monotonic() - self._since_s > PATIENCE_S
        if self._jobs and late and not self._jobs[0].hurried:
            self._jobs[0].hurried = True
            self._in_turn = self._in_turn or Workers("content-in-turn")
            self._in_turn.submit(self._run, self._jobs[0], True)
