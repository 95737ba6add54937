"""Calls into the app's own code: an error is logged and shown, and never stops the frames."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from heimdall.app import App
from heimdall.errors import AppError
from heimdall.system.faults import Fallible, Faults, say

FAILURES_UNTIL_DISABLED = 5
HANGING_NS = 1_000_000_000  # named at once; what takes longer than a frame, when it does so again
_LONG_S = 3600.0  # once a script is over, or has failed


class Callbacks(Fallible):
    """Calls app methods; one that raises several times in a row is not called any more."""

    def __init__(
        self, clock: Callable[[], int] = time.perf_counter_ns, frame_ns: int = HANGING_NS
    ) -> None:
        """``frame_ns``: from one frame to the next. What takes longer, by ``clock``, is named."""
        self._clock, self.frame_ns = clock, frame_ns
        self._failures: Counter[str] = Counter()
        self._slow: Counter[str] = Counter()  # how often in a row
        self._faults = Faults()

    def call(self, method: Callable[..., Any], *args: Any, name: str = "") -> Any:
        """``method(*args)``, or None when it raised or is disabled. ``name`` is what errors
        call it, where its own would mean nothing to the app's author."""
        name = name or getattr(method, "__qualname__", repr(method))
        if self._failures[name] >= FAILURES_UNTIL_DISABLED:
            return None
        began_ns = self._clock()
        try:
            value = method(*args)
        except KeyboardInterrupt:  # the user's own
            raise
        except BaseException as error:
            # The app's code may raise anything, SystemExit too; it is not what ends a run.
            self._failed(name, error)
            return None
        finally:
            self._took(name, self._clock() - began_ns)
        self._failures[name] = 0
        return value

    def _took(self, name: str, ns: int) -> None:
        """Name what keeps frames waiting: they are drawn by the same thread."""
        if ns <= self.frame_ns:
            self._slow.pop(name, None)
            return
        self._slow[name] += 1
        if ns > HANGING_NS:
            self._faults.report(f"{name} took {ns / 1e9:.1f} s: no frame was drawn meanwhile")
        elif self._slow[name] == FAILURES_UNTIL_DISABLED:
            self._faults.report(
                f"{name} took {ns / 1e6:.0f} ms, {FAILURES_UNTIL_DISABLED} times in a row, and a "
                f"frame has {self.frame_ns / 1e6:.0f} ms: App.in_background is for what takes long"
            )

    def begin_anew(self) -> None:
        """The code has changed: what failed before may do now."""
        self._failures.clear()
        self._faults.newest = ""

    @property
    def disabled(self) -> list[str]:
        """Those that are not called any more."""
        return [name for name, times in self._failures.items() if times >= FAILURES_UNTIL_DISABLED]

    def _failed(self, name: str, error: BaseException) -> None:
        self._failures[name] += 1
        message = f"{name} raised {say(error)}"
        self._faults.report(message, error)
        if self._failures[name] == FAILURES_UNTIL_DISABLED:
            self._faults.report(f"{message} ({FAILURES_UNTIL_DISABLED} times in a row: disabled)")


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
