"""The clock of a run, and waiting until a time on it.

``time.sleep`` alone was up to 6 ms off beside busy threads; sleeping to a fraction of a
millisecond before the deadline and yielding until it kept starts 33.33 ms apart at p99.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

LOOK_NS = 1_000_000_000  # so long nobody asked the clock: why, is looked up
SPIN_NS = 300_000  # the last stretch, spent yielding: the interpreter lock is free meanwhile
_SIGNAL_S, _MAIN_S = 0.25, 0.05  # for a signal that has just come; frames wait for the main thread


class Stops:
    """When the process went on after it had been stopped (SIGSTOP, Ctrl-Z): SIGCONT tells.

    A thread waits for the signal, which all others block. A handler would interrupt the main
    thread: there ``SimpleQueue.get`` with a timeout that is over by then waits for ever (CPython).
    """

    _went_on_ns = -1
    _over = False

    @contextlib.contextmanager
    def noticed(self) -> Iterator[None]:
        """Listen while the context lasts; on the main thread, before there are others, which would
        have the signal instead."""
        number = getattr(signal, "SIGCONT", None)  # Windows has none
        if number is None:
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        self._over = False
        listener = threading.Thread(target=self._listen, args=(number,), name="stops", daemon=True)
        listener.start()
        try:
            yield
        finally:
            self._over = True
            if listener.ident is not None:
                signal.pthread_kill(listener.ident, number)
            listener.join(1.0)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _listen(self, number: int) -> None:
        while not self._over:
            signal.sigwait({number})
            if not self._over:
                self._went_on_ns = time.perf_counter_ns()

    def since(self, then_ns: int) -> bool:
        """Whether it has been stopped since, by ``time.perf_counter_ns``; the listener may just be
        about to hear of it."""
        here = threading.current_thread() is threading.main_thread()
        until_s = time.monotonic() + (_MAIN_S if here else _SIGNAL_S)
        while self._went_on_ns <= then_ns:
            if time.monotonic() >= until_s:
                return False
            time.sleep(0.001)
        return True


STOPS = Stops()


def asleep_ns() -> int:
    """How much of ``time.perf_counter_ns`` the machine was asleep. Only Windows counts that in; its
    other clock does not (resolution: 1 ms or better)."""
    if sys.platform != "win32":
        return 0
    import ctypes

    awake = ctypes.c_ulonglong()
    ctypes.windll.kernelbase.QueryUnbiasedInterruptTimePrecise(ctypes.byref(awake))
    return time.perf_counter_ns() - awake.value * 100


class AwakeClock:
    """``time.perf_counter_ns`` without the time in which this process could not run at all.

    When a laptop sleeps, or the process is stopped, the clock of some systems goes on. On this one
    frames, deadlines and expected latencies follow each other as if nothing had happened. Only the
    system's word counts: by its clocks it slept, or a signal ended a stop. A callback that holds
    the main thread for seconds is a stall, and is in every figure.

    Any thread may read it; it is read many times a frame, so that a gap of LOOK_NS shows.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.perf_counter_ns,
        asleep: Callable[[], int] = asleep_ns,
        stopped_since: Callable[[int], bool] = STOPS.since,
    ) -> None:
        self._clock, self._asleep, self._stopped_since = clock, asleep, stopped_since
        self._asleep_ns = asleep()
        self._last_ns: int | None = None
        self._looked_ns = -1  # until then all gaps are known
        self._left_out_ns = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        now_ns = self._clock()
        if self._last_ns is not None and now_ns - self._last_ns > LOOK_NS:
            self._look(self._last_ns, now_ns)
        self._last_ns = now_ns
        return now_ns - self._left_out_ns

    def _look(self, last_ns: int, now_ns: int) -> None:
        stopped = self._stopped_since(last_ns)
        with self._lock:
            if self._looked_ns >= last_ns:  # another thread was first
                return
            self._looked_ns = now_ns
            asleep_ns, before_ns = self._asleep(), self._asleep_ns
            self._asleep_ns = asleep_ns
            gap_ns = now_ns - last_ns
            left_out_ns = gap_ns if stopped else min(gap_ns, asleep_ns - before_ns)
            if left_out_ns < LOOK_NS:
                return
            self._left_out_ns += left_out_ns
        log.warning("the system did not run this for %.1f s: not counted", left_out_ns / 1e9)


def wait_until(deadline_ns: int, clock: Callable[[], int] = time.perf_counter_ns) -> None:
    """Sleep until shortly before ``deadline_ns``, then yield until it: sleeping zero gives the
    interpreter lock away each turn."""
    if (ahead_ns := deadline_ns - SPIN_NS - clock()) > 0:
        time.sleep(ahead_ns / 1e9)
    while clock() < deadline_ns:
        time.sleep(0)
