"""The clock of a run, and waiting until a time on it.

``time.sleep`` alone was up to 6 ms off beside busy threads; sleeping to a fraction of a
millisecond before the deadline and yielding until it kept starts 33.33 ms apart at p99.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

SLEEP_NS = 2_000_000_000  # far above what any callback or decision may take
_LOOK_NS = 10_000_000  # so often the processor time is looked at
SPIN_NS = 300_000  # the last stretch, spent yielding: the interpreter lock is free meanwhile


class AwakeClock:
    """``time.perf_counter_ns`` without the time in which nothing ran.

    When a laptop sleeps, or a process is stopped, the clock of some systems goes on. On this one
    frames, deadlines and expected latencies follow each other as if nothing had happened. Any
    thread may read it; it is read many times a frame, so that a gap of SLEEP_NS shows. A frame that
    waits for seconds while other work has the GPU leaves such a gap too, and counts: by ``used``,
    the processor time of this process, something ran.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.perf_counter_ns,
        used: Callable[[], int] = time.process_time_ns,
    ) -> None:
        self._clock, self._used = clock, used
        self._looked_ns, self._used_ns = -_LOOK_NS, 0
        self._last_ns: int | None = None
        self._slept_ns = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        now_ns = self._clock()
        if self._last_ns is not None and now_ns - self._last_ns > SLEEP_NS:
            self._skip(now_ns)
        self._last_ns = now_ns
        if now_ns - self._looked_ns >= _LOOK_NS:
            self._looked_ns, self._used_ns = now_ns, self._used()
        return now_ns - self._slept_ns

    def _skip(self, now_ns: int) -> None:
        with self._lock:
            assert self._last_ns is not None
            slept_ns = now_ns - self._last_ns
            if slept_ns <= SLEEP_NS:  # another thread was first
                return
            if self._used() - self._used_ns > slept_ns // 2:
                return
            self._slept_ns += slept_ns
            self._last_ns = now_ns
        log.warning("nothing ran for %.1f s: that time is not counted", slept_ns / 1e9)


def spin_until(deadline_ns: int, clock: Callable[[], int] = time.perf_counter_ns) -> None:
    """Yield until ``deadline_ns``; sleeping zero gives the interpreter lock away each turn."""
    while clock() < deadline_ns:
        time.sleep(0)
