"""Threads that take work from one queue each: the GPU worker, the CPU worker and the pool."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

_left_behind: list[threading.Thread] = []


def any_left_behind() -> bool:
    """True if a thread that was to end still runs: in native code, most likely."""
    return any(thread.is_alive() for thread in _left_behind)


class Workers:
    """``count`` threads that run submitted calls in order of arrival.

    Calls report what they did themselves (they post events); one that raises is logged and
    the thread goes on. ``urgency`` is called first in each thread, to set its priority.
    """

    def __init__(
        self, name: str, count: int = 1, urgency: Callable[[], None] | None = None
    ) -> None:
        self.name = name
        self._urgency = urgency
        self._queue: queue.SimpleQueue[tuple[Callable[..., object], tuple[Any, ...]] | None]
        self._queue = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{index}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Callable[..., object], *args: Any) -> None:
        """Queue ``call(*args)``."""
        self._queue.put((call, args))

    def drain(self, timeout_s: float = 5.0) -> bool:
        """Return when what is queued has been done: False when some of it still is not, after
        ``timeout_s``. At once where the threads have ended, or have been left behind."""
        alive = [thread.is_alive() for thread in self._threads]
        if not all(alive):
            return not any(alive)
        done = threading.Event()
        meet = threading.Barrier(len(self._threads), action=done.set)

        def arrive() -> None:  # each thread takes one, and waits for the others in it
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait()

        for _ in self._threads:
            self.submit(arrive)
        try:
            return done.wait(timeout_s)
        finally:
            meet.abort()  # waiting threads go on, and late ones do not begin to wait

    def close(self, timeout_s: float = 5.0) -> None:
        """Let what is queued finish, then end the threads; one that hangs is left behind."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout_s)
            if thread.is_alive():
                _left_behind.append(thread)
                log.warning(
                    "%s is still busy after %g s: it is left behind", thread.name, timeout_s
                )

    def _run(self) -> None:
        if self._urgency:
            self._urgency()
        while (work := self._queue.get()) is not None:
            call, args = work
            try:
                call(*args)
            except Exception:
                log.exception("%s: %s failed", self.name, getattr(call, "__name__", call))
