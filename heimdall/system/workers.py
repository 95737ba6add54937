"""Threads that take work from one queue each: the GPU worker, the CPU worker and the pool."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from heimdall.errors import HeimdallError

log = logging.getLogger(__name__)

T = TypeVar("T")


class OverdueError(HeimdallError):
    """A call has not come back within its bound: nobody waits for it any more."""


@dataclass(frozen=True, eq=False)
class _Work:
    """A call; ``failed`` hears of what it raises, or that it is not back after ``bound_ns``."""

    call: Callable[..., object]
    args: tuple[Any, ...]
    bound_ns: int | None
    failed: Callable[[BaseException], object] | None

    @property
    def name(self) -> str:
        return getattr(self.call, "__name__", repr(self.call))


class _Worker(threading.Thread):
    """``work``: what it is at, since ``began_ns``; ``given_up``: another one has its place."""

    work: _Work | None = None
    began_ns = 0
    given_up = False


class Workers:
    """``count`` threads that run submitted calls in order of arrival.

    Calls report what they did themselves (they post events); one that raises is logged, or told to
    whom it concerns, and the thread goes on. ``urgency`` is called first in each thread, to set its
    priority. ``clock`` gives ns; time in which the process could not run is no delay.
    """

    def __init__(
        self,
        name: str,
        count: int = 1,
        urgency: Callable[[], None] | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.name = name
        self._urgency, self._clock = urgency, clock
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # between a thread that is done and one that gives it up
        self._closed = False
        self._threads = [self._start(index) for index in range(count)]

    def _start(self, index: int) -> _Worker:
        worker = _Worker(target=self._run, name=f"{self.name}-{index}", daemon=True)
        worker.start()
        return worker

    def submit(
        self,
        call: Callable[..., object],
        *args: Any,
        bound_s: float | None = None,
        failed: Callable[[BaseException], object] | None = None,
    ) -> None:
        """Queue ``call(*args)``. ``failed`` is told of whatever it raises, on its thread; and by
        ``give_up_overdue``, of an OverdueError, where it has run for longer than ``bound_s``."""
        bound_ns = None if bound_s is None else round(bound_s * 1e9)
        self._queue.put(_Work(call, args, bound_ns, failed))

    def ask(self, call: Callable[..., T], *args: Any, bound_s: float | None = None) -> Future[T]:
        """``submit``, for what it returns or raises, or the OverdueError."""
        answer: Future[T] = Future()

        def work() -> None:
            try:
                answer.set_result(call(*args))
            except BaseException as error:  # whatever it is, who asked is told
                answer.set_exception(error)

        self.submit(work, bound_s=bound_s, failed=answer.set_exception)
        return answer

    def give_up_overdue(self) -> int:
        """Have other threads take the place of those that hang in a call beyond its bound, or have
        died; what they hang in is told. Returns how many did. Called now and then, by one thread.
        """
        if self._closed:
            return 0
        now_ns, found = self._clock(), 0
        for index, worker in enumerate(self._threads):
            work = worker.work
            if work is not None and work.bound_ns is not None:
                late_ns = now_ns - worker.began_ns
                if late_ns > work.bound_ns and self._give_up(worker, work):
                    self._threads[index] = self._start(index)
                    self._tell(
                        work, OverdueError(f"it has not come back for {late_ns / 1e9:.1f} s")
                    )
                    found += 1
            if not worker.is_alive() and not worker.given_up:
                log.error("%s has died; another thread takes its place", worker.name)
                self._threads[index] = self._start(index)
                found += 1
        return found

    def _give_up(self, worker: _Worker, work: _Work) -> bool:
        """False: it has just come back."""
        with self._lock:
            if worker.work is not work:
                return False
            worker.given_up = True
        return True

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

    def end(self) -> None:
        """Nothing more is taken: the threads end behind what is queued."""
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._queue.put(None)

    def close(self, timeout_s: float = 5.0) -> None:
        """Let what is queued finish, then end the threads; those that hang after ``timeout_s`` are
        left behind."""
        self.end()
        until_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
            if thread.is_alive():
                log.warning(
                    "%s is still busy after %g s: it is left behind", thread.name, timeout_s
                )

    # --- on the threads ----------------------------------------------------------------------

    def _run(self) -> None:
        worker = threading.current_thread()
        assert isinstance(worker, _Worker)
        if self._urgency:
            self._urgency()
        while not worker.given_up and (work := self._queue.get()) is not None:
            worker.began_ns = self._clock()
            worker.work = work
            try:
                work.call(*work.args)
            except BaseException as error:  # anything may come out of an app's code
                if not worker.given_up:
                    self._tell(work, error)
            finally:
                with self._lock:
                    worker.work = None

    def _tell(self, work: _Work, error: BaseException) -> None:
        if work.failed is None:
            log.error("%s: %s failed", self.name, work.name, exc_info=error)
            return
        try:
            work.failed(error)
        except Exception:
            log.exception("%s: %s failed, and so did telling of it", self.name, work.name)
