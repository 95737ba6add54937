"""Signals that end the program are heard where everything is whole.

Python raises KeyboardInterrupt between any two lines: in the midst of a coordinator's decision, or
when something has been opened and nothing knows of it yet, so that nothing closes it. While
``INTERRUPTS.held`` it waits for the next point at which the program says that it may come.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
_UNUSED = signal.SIG_DFL  # a timer's signal that nobody handles
_PATIENCE_S = 0.5  # for such a point: an app's code may never come to one
ONE_END_S = 2.0  # a terminal that closes says so twice, and outputs are being saved by then


class Interrupts:
    """See the module. The main thread's: to others nothing of it applies."""

    def __init__(self) -> None:
        self._former: dict[int, Callable[[int, FrameType | None], Any]] = {}  # while held
        self._heard_s: float | None = None  # the first, by ``time.monotonic``
        self._waiting: int | None = None  # its number, until it is raised
        self._open = self._ending = self._timed = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let them wait for ``due``, for an ``at_once`` block or for the end of this one, which
        raises them; for half a second at most where the system has a timer that says so. Those
        that are ignored, or that nobody handles, stay as they are. Within another one: nothing."""
        if threading.current_thread() is not threading.main_thread() or self._former:
            yield
            return
        self._heard_s, self._waiting = None, None
        self._open = self._ending = False
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        handlers = {number: signal.getsignal(number) for number in numbers}
        self._former = {number: each for number, each in handlers.items() if callable(each)}
        try:
            with _timer(self._overdue) as self._timed:
                for number in self._former:
                    signal.signal(number, self._hear)
                yield
        finally:
            former, self._former = self._former, {}
            for number, handler in former.items():
                signal.signal(number, handler)
            if (waiting := self._taken()) is not None:
                former[waiting](waiting, None)

    def due(self) -> None:
        """Here everything is whole: raise what has been heard."""
        if self._waiting is not None and threading.current_thread() is threading.main_thread():
            self._raise()

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise what was heard, and what comes meanwhile, without waiting: this only waits itself,
        for something that others do."""
        self.due()
        before = self._open
        try:
            self._open = True
            yield
        finally:
            self._open = before

    def ending(self) -> None:
        """The program is about to end what is ``held``, as they ask for: they say nothing new."""
        self._ending, self._waiting = True, None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self._heard_s is None:
            self._heard_s = now_s
        elif now_s - self._heard_s < ONE_END_S:
            return
        else:  # who says it again means it
            self._open = True
        if self._ending and not self._open:
            return
        self._waiting = number
        if self._open and threading.current_thread() is threading.main_thread():
            self._raise()
        elif self._timed:
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)

    def _overdue(self, number: int, frame: FrameType | None) -> None:
        self.due()

    def _raise(self) -> None:
        if (number := self._taken()) is not None:
            self._former[number](number, None)

    def _taken(self) -> int | None:
        number, self._waiting = self._waiting, None
        return number


@contextlib.contextmanager
def _timer(handler: Callable[[int, FrameType | None], None]) -> Iterator[bool]:
    """Have the system's timer call this; as before afterwards. False: there is none, as on Windows,
    or the host of this run uses it."""
    if getattr(signal, "SIGALRM", None) is None or signal.getsignal(signal.SIGALRM) is not _UNUSED:
        yield False
        return
    signal.signal(signal.SIGALRM, handler)
    try:
        yield True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, _UNUSED)


INTERRUPTS = Interrupts()
