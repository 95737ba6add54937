"""A run that draws nothing: frames come in, results go out, and the GPU has no gaps.

Each frame asks for one inference of every continuous DNN; while one runs, the newest frame is
kept for the next. The same policies share the GPU, chunk after chunk.
"""

from __future__ import annotations

from typing import Any

from heimdall.runtime.base import BaseRun
from heimdall.runtime.executor import Result
from heimdall.vocabulary.events import RenderingStopped

_STEP_NS = 100_000_000


class UndrawnRun(BaseRun):
    """One run of one app, or of a list of DNNs, without pictures."""

    def begin(self) -> None:
        """The GPU is free."""
        super().begin()
        if not self._station.loops:
            self._board.receive(RenderingStopped())
        self._delivered = 0

    def pushed(self) -> None:
        """There is a new frame."""
        for dnn, deployment in self._setup.deployments.items():
            if not deployment.dnn.on_event:
                self.ask(dnn, {})

    def turn(self, timeout_s: float | None = None) -> int:
        """Serve the workers until a result is there, nothing runs any more, or the time is over;
        returns how many results came."""
        before, began_ns = self._delivered, self._clock()
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

    def delivered(self, result: Result) -> None:
        super().delivered(result)
        self._delivered += 1

    def summary(self) -> dict[str, Any]:
        """The figures until now."""
        return super().summary()
