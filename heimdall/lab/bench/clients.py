"""Clients that ask for a scenario's models as time goes by, and note what becomes of it."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from heimdall.errors import HeimdallError
from heimdall.lab.bench.traffic import Arrival, Traffic
from heimdall.runtime.telemetry.jobs import Outcome
from heimdall.system.faults import say

log = logging.getLogger(__name__)

Submit = Callable[..., "Future[Any]"]  # (slo_ms, where it is not the model's)
Exits = Mapping[str, tuple[str, float]]  # by output: name and accuracy


class Clients(threading.Thread):
    """A thread that asks, when ``traffic`` says so, whatever the answers are doing.

    Latency counts from when a request was due, so that a client that comes late hides nothing.
    ``outcomes``: what became of those that were answered, in that order; ``over`` is set when no
    more come and all are.
    """

    def __init__(
        self,
        traffic: Traffic,
        submits: Mapping[str, Submit],
        slos_ns: Mapping[str, int | None],
        clock: Callable[[], int] = time.perf_counter_ns,
        exits: Mapping[str, Exits] | None = None,
    ) -> None:
        """``submits`` by model: ask once. ``exits`` of models that have some: see ``exits_in``."""
        super().__init__(name="clients", daemon=True)
        self._traffic, self._submits, self._slos_ns = traffic, submits, slos_ns
        self._clock, self._exits = clock, exits or {}
        self._changed = threading.Condition()
        self._due: list[tuple[int, str, int, Arrival]] = []
        self._count = itertools.count()
        self._waiting = 0  # for answers
        self._stopped = False
        self._error: Exception | None = None
        self._began_ns = 0
        self.outcomes: list[Outcome] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Ask until nothing is left to ask for, and all is answered."""
        try:
            self._began_ns = self._clock()
            for model, times_ns in self._traffic.arrivals_ns().items():
                for at_ns in times_ns:
                    self._come(Arrival(model, at_ns, self._traffic.slo_ns(model, at_ns)))
            while (due := self._next()) is not None:
                self._ask(due)
        except Exception as error:
            self._failed(error)
        finally:
            self.over.set()

    def check(self) -> None:
        """Raise HeimdallError where asking has failed: then the outcomes are not all."""
        if self._error is not None:
            raise HeimdallError(f"asking for models failed: {say(self._error)}") from self._error

    def _failed(self, error: Exception) -> None:
        """Nothing more is asked for."""
        log.error("asking for models failed: %s", say(error), exc_info=error)
        self._error = self._error or error
        self.stop()

    def rounds(self) -> dict[str, Any]:
        """``frames`` of a summary: the rounds of closed loops, where there are any."""
        return {"frames": self._traffic.frame_figures()} if self._traffic.frames_ns else {}

    def stop(self) -> None:
        """Ask for no more, and wait for no answer."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _come(self, arrival: Arrival) -> None:
        """It will be asked for when it is due, unless it is lost."""
        model, at_ns, slo_ns, lost = arrival
        if lost:
            self.outcomes.append(Outcome(model, at_ns, None, slo_ns, lost))
        else:
            heapq.heappush(self._due, (at_ns, model, next(self._count), arrival))

    def _next(self) -> Arrival | None:
        """The next request, when it is due; None when there will be none."""
        with self._changed:
            while not self._stopped and (self._due or self._waiting):
                left_ns = self._due[0][0] - self._now_ns() if self._due else None
                if left_ns is not None and left_ns <= 0:
                    self._waiting += 1
                    return heapq.heappop(self._due)[-1]
                self._changed.wait(None if left_ns is None else left_ns / 1e9)
            return None

    def _ask(self, due: Arrival) -> None:
        submit = self._submits[due.model]
        try:
            if due.slo_ns is None:
                future = submit()
            else:
                left_ns = due.at_ns + due.slo_ns - self._now_ns()
                future = submit(slo_ms=max(left_ns, 1) / 1e6)
        except HeimdallError as error:
            self._note(due, str(error))
            return
        future.add_done_callback(partial(self._answered, due))

    def _answered(self, due: Arrival, done: Future[Any]) -> None:
        """On the thread of who answers, which only logs what is raised."""
        try:
            self._note(due, _problem(done), done)
        except Exception as error:
            self._failed(error)

    def _note(self, due: Arrival, problem: str, done: Future[Any] | None = None) -> None:
        model, at_ns, slo_ns, _ = due
        now_ns = self._now_ns()
        finished_ns = None if problem else now_ns
        taken = self._taken(model, None if problem or done is None else done.result())
        slo_ns = self._slos_ns[model] if slo_ns is None else slo_ns
        outcome = Outcome(model, at_ns, finished_ns, slo_ns, problem, *taken)
        with self._changed:
            self.outcomes.append(outcome)
            for arrival in self._traffic.come_of(outcome, now_ns):
                self._come(arrival)
            self._waiting -= 1
            self._changed.notify()

    def _taken(self, model: str, outputs: Mapping[str, Any] | None) -> tuple[str, float | None]:
        """The exit that an answer has come from, and its accuracy."""
        exits = self._exits.get(model)
        if not exits:
            return "", None
        found = [exit for output, exit in exits.items() if outputs and output in outputs]
        return found[-1] if found else ("", 0.0)

    def _now_ns(self) -> int:
        return self._clock() - self._began_ns


def _problem(done: Future[Any]) -> str:
    """Why a future has no result; "" where it has one."""
    if done.cancelled():
        return "cancelled"
    error = done.exception()
    return "" if error is None else str(error) or type(error).__name__
