"""A run that draws nothing: frames come in, results go out, and the GPU has no gaps.

Each frame asks for one inference of every continuous DNN; while one runs, the newest frame is
kept for the next. The same policies share the GPU, chunk after chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from heimdall.runtime.base import BaseRun
from heimdall.runtime.executor import Result

_STEP_NS = 100_000_000


class UndrawnRun(BaseRun):
    """One run of one app, or of a list of DNNs, without pictures."""

    _delivered = 0

    def pushed(self) -> None:
        """There is a new frame."""
        for dnn, deployment in self._setup.deployments.items():
            if not deployment.dnn.on_event:
                self.ask(dnn, {})

    def turn(self, timeout_s: float | None = None) -> int:
        """Serve the workers until a result is there, nothing runs any more, or the time is over;
        returns how many results came."""
        before, began_ns = self._delivered, self._clock()
        self._station.free_gpu()
        self._board.catch_up(results=True)
        while self._delivered == before and self._board.in_flight:
            now_ns = self._clock()
            until_ns = now_ns + _STEP_NS
            if timeout_s is not None:
                until_ns = min(until_ns, began_ns + round(timeout_s * 1e9))
                if now_ns >= until_ns:
                    break
            self._board.serve_one(until_ns)
        self._request()
        return self._delivered - before

    def serve(self, for_ns: int) -> None:
        """Serve the workers once, or do what is due; waits so long at most."""
        self._station.free_gpu()
        self._board.catch_up(results=True)
        self._board.serve_one(self._clock() + for_ns)
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
                self._station.free_gpu()
                self._board.catch_up(results=True)
                self._request()
                wake_ns = self._board.catch_up_timers()
            if timer is not None:
                timer.cancel()
                timer = None
            if wake_ns is not None:
                timer = loop.call_later(max(wake_ns - self._clock(), 0) / 1e9, serve)

        self._station.inbox.notify = lambda: loop.call_soon_threadsafe(serve)
        serve()

    def close(self) -> None:
        """Leave the station."""
        self._station.inbox.notify = None
        super().close()

    def delivered(self, result: Result) -> None:
        super().delivered(result)
        self._delivered += 1
