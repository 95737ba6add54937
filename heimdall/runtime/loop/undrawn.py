"""A run that draws nothing: frames come in, results go out, and the GPU has no gaps.

Each frame asks for one inference of every continuous DNN; while one runs, the newest frame is
kept for the next. The same policies share the GPU, chunk after chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from heimdall.capture.pushed import PushedSource
from heimdall.runtime.execution.runs import Result
from heimdall.runtime.loop.base import BaseRun
from heimdall.system.interrupts import INTERRUPTS

_LOOK_NS = 10_000_000  # between looks for changes that are not signalled


class UndrawnRun(BaseRun):
    """One run of one app, or of a list of DNNs, without pictures."""

    _delivered = 0
    _seen = -1  # the frame that was asked about last, of a source of its own
    _serve_soon: Callable[[], object] | None = None  # where an asyncio loop serves

    def pushed(self) -> None:
        """There is a new frame."""
        for dnn, deployment in self._setup.deployments.items():
            if not deployment.dnn.on_event:
                self.ask(dnn, {})

    def ask(self, dnn: str, options: Mapping[str, Any]) -> int:
        ticket = super().ask(dnn, options)
        if self._serve_soon is not None:  # it may be due later only, and no worker will tell
            with contextlib.suppress(RuntimeError):  # that loop has been closed
                self._serve_soon()
        return ticket

    @property
    def _watches(self) -> bool:
        """Whether frames come from a source of its own, and may still come."""
        source = self._setup.source
        return not isinstance(source, PushedSource) and not source.ended

    @property
    def finished(self) -> bool:
        """True if the source has ended and every frame was looked at."""
        return self._setup.source.ended and not self._router.in_flight

    def turn(self, timeout_s: float | None = None) -> int:
        """Serve the workers until a result is there, nothing runs any more, or the time is over;
        returns how many results came."""
        before, began_ns = self._delivered, self._clock()
        self._look()
        while self._delivered == before and (self._router.in_flight or self._watches):
            now_ns = self._clock()
            until_ns = now_ns + _LOOK_NS
            if timeout_s is not None:
                until_ns = min(until_ns, began_ns + round(timeout_s * 1e9))
                if now_ns >= until_ns:
                    break
            self._router.serve_one(until_ns)
            self._look()
            INTERRUPTS.due()
        return self._delivered - before

    def serve(self) -> None:
        """Serve the workers once, or do what is due; waits for a moment at most."""
        self._look()
        self._router.serve_one(self._clock() + _LOOK_NS)
        self._look()

    def _look(self) -> None:
        """See to whatever needs no waiting: reports, a new frame, what the app asks for."""
        self._shared_gpu.free_gpu()
        self._shared_gpu.executor.watch()
        self._router.catch_up(results=True)
        if self._watches and (newest := self.newest_sequence) != self._seen:
            self._seen = newest
            self.pushed()
        self._request()

    def serve_on(
        self,
        loop: asyncio.AbstractEventLoop,
        once: Callable[[], contextlib.AbstractContextManager[object]],
    ) -> None:
        """Let an asyncio loop serve the workers: when one reports, and when something is due."""
        timer: asyncio.TimerHandle | None = None

        def serve() -> None:
            nonlocal timer
            if self.closed:
                return
            with once():
                self._look()
                wake_ns = self._router.catch_up_timers()
            if timer is not None:
                timer.cancel()
                timer = None
            now_ns = self._clock()
            if self._watches or (self._shared_gpu.loops and self._router.in_flight):
                # A new frame, or another session that stops drawing, is not signalled.
                wake_ns = min(wake_ns or now_ns + _LOOK_NS, now_ns + _LOOK_NS)
            if wake_ns is not None:
                timer = loop.call_later(max(wake_ns - now_ns, 0) / 1e9, serve)

        self._shared_gpu.inbox.listeners[self] = lambda: loop.call_soon_threadsafe(serve)
        self._serve_soon = lambda: loop.call_soon(serve)
        serve()

    def close(self) -> None:
        """Leave the shared GPU."""
        self._shared_gpu.inbox.listeners.pop(self, None)
        super().close()

    def delivered(self, result: Result) -> None:
        super().delivered(result)
        self._delivered += 1
