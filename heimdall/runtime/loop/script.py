"""An app's own event script, which plays its user in headless runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from heimdall.app import App
from heimdall.errors import AppError
from heimdall.runtime.loop.callbacks import Callbacks

_LONG_S = 3600.0  # once the script is over, or has failed


class Script:
    """Steps through ``App.demo_events``; an error in it is reported as any callback's."""

    def __init__(self, app: App, callbacks: Callbacks) -> None:
        self._app, self._callbacks = app, callbacks
        self._steps: Iterator[float] | None = None
        self._due_ns = 0

    def play(self, now_ns: int) -> None:
        """Take the next step if it is due."""
        if now_ns < self._due_ns:
            return
        wait_s = self._callbacks.call(self._step, name=f"{type(self._app).__name__}.demo_events")
        self._due_ns = now_ns + round((_LONG_S if wait_s is None else wait_s) * 1e9)

    def _step(self) -> float | None:
        """Seconds until the next step; None: the script is over."""
        if self._steps is None:
            self._steps = iter(self._app.demo_events())
        wait_s = next(self._steps, None)
        if wait_s is not None and not 0 <= wait_s < math.inf:
            raise AppError(f"demo_events() must yield seconds to wait, not {wait_s!r}")
        return wait_s
