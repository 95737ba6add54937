"""Threads that call the code of apps: preprocessing and decoding may raise anything, or hang.

What hangs is given up after a second. From then on that DNN has a thread of its own, so that no
other waits behind it; and while several threads hang in its code, it is not called.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from heimdall.errors import AppError
from heimdall.system.workers import OverdueError, Workers

HANGING_S = 1.0
MOST_HANGING = 4  # threads of one DNN


@dataclass
class _Call:
    """Of whose code it is, and whether it is over."""

    owner: str
    over: bool = False
    given_up: bool = False


class Pool:
    """``shared``: the threads of all DNNs. Used by one thread."""

    def __init__(self, count: int, urgency: Callable[[], None], clock: Callable[[], int]) -> None:
        self._new = partial(Workers, urgency=urgency, clock=clock)
        self.shared = self._new("pool", count)
        self._apart: dict[str, Workers] = {}
        self._hanging: Counter[str] = Counter()  # threads in a DNN's code
        self._lock = threading.Lock()

    @property
    def workers(self) -> list[Workers]:
        """All threads."""
        return [self.shared, *self._apart.values()]

    def submit(
        self,
        owner: str,
        call: Callable[..., object],
        *args: Any,
        failed: Callable[[BaseException], object],
    ) -> None:
        """Call the code of DNN ``owner``; ``failed`` hears of what it raises, of an OverdueError
        where it hangs, and of an AppError where too much of it hangs already."""
        if self._hanging[owner] >= MOST_HANGING:
            failed(AppError(f"it hangs in {MOST_HANGING} threads, and is not called meanwhile"))
            return
        this = _Call(owner)
        workers = self._apart.get(owner, self.shared)
        told = partial(self._failed, this, failed)
        workers.submit(self._run, this, call, args, bound_s=HANGING_S, failed=told)

    def _run(self, this: _Call, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        try:
            call(*args)
        finally:
            with self._lock:
                this.over = True
                self._hanging[this.owner] -= this.given_up

    def _failed(
        self, this: _Call, failed: Callable[[BaseException], object], error: BaseException
    ) -> None:
        if isinstance(error, OverdueError):
            with self._lock:
                this.given_up = not this.over
                self._hanging[this.owner] += this.given_up
            if this.owner not in self._apart:
                self._apart[this.owner] = self._new(f"pool-{this.owner}")
        failed(error)
