"""Threads that take work from one queue each: the GPU worker, the CPU worker and the pool."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

_left_behind: list[threading.Thread] = []


def any_left_behind() -> bool:
    """Whether a thread that was to end still runs: in native code, most likely."""
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

    def drain(self, timeout_s: float = 5.0) -> None:
        """Return when what is queued has been done; at once where the threads have ended."""
        if not all(thread.is_alive() for thread in self._threads):
            return
        done = threading.Semaphore(0)
        meet = threading.Barrier(len(self._threads), action=done.release)
        for _ in self._threads:  # each takes one, and waits for the others in it
            self.submit(meet.wait, timeout_s)
        done.acquire(timeout=timeout_s)

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
