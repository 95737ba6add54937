"""Between the workers, the coordinator and the sessions: on one thread, as everything that decides.

Workers post what happened to an inbox. It is told to the coordinator, whose actions the executor
carries out; results go to the session whose DNN they are of. All sessions on one GPU share one
router, and so one coordinator.
"""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from heimdall.runtime.execution.ledger import Message
from heimdall.runtime.execution.protocols import Coordinates, Executes
from heimdall.runtime.execution.runs import Result
from heimdall.runtime.loop.frame_loop import Observer
from heimdall.system.clock import SPIN_NS
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    Drop,
    Event,
    InferenceRequested,
    JobFailed,
    Prepare,
    RunTogether,
    SlowDecision,
)

# A hundred times what one takes, and longer than what a frame has to spare: the policy is at fault,
# or the machine stood still.
SLOW_DECISION_NS = 5_000_000


class Inbox(queue.SimpleQueue):  # of Message
    """Where workers report. ``listeners`` are called, on their thread, whenever one has."""

    def __init__(self) -> None:
        self.listeners: dict[object, Callable[[], object]] = {}

    def put(self, item: Message, block: bool = True, timeout: float | None = None) -> None:
        super().put(item)
        for listener in tuple(self.listeners.values()):
            with contextlib.suppress(RuntimeError):  # the loop that listened has been closed
                listener()


class Client(Protocol):
    """A session, as the router knows it."""

    def acted(self, action: Action) -> None:
        """The coordinator has decided something about one of its DNNs."""

    def delivered(self, result: Result) -> None:
        """A result of one of its DNNs is there."""

    def worked(self, processor: str, elapsed_ns: int, own: bool) -> None:
        """A processor has run a chunk, of one of its ``own`` DNNs or of another session's."""

    def failed(self, job: int, dnn: str, error: str) -> None:
        """The result of a job that had run could not be made."""

    def decided(self, took_ns: int) -> None:
        """A scheduler was asked, and took so long."""


class Router:
    """See the module. Not to be used from two threads at once."""

    def __init__(
        self,
        coordinator: Coordinates,
        executor: Executes,
        inbox: queue.SimpleQueue[Message],
        clock: Callable[[], int],
    ) -> None:
        """``observers`` hear of every call of the coordinator."""
        self.coordinator, self.executor, self.clock = coordinator, executor, clock
        self._inbox = inbox
        self.observers: list[Observer] = []
        self._clients: list[Client] = []
        self._owners: dict[str, Client] = {}  # by DNN
        self._jobs: dict[int, tuple[Client, str]] = {}  # whose results are not there yet: their DNN
        self._later: deque[Result] = deque()  # to be delivered once a frame is presented

    def join(self, client: Client, dnns: list[str]) -> None:
        """From now on what concerns these DNNs goes to ``client``."""
        if client not in self._clients:
            self._clients.append(client)
        self._owners.update(dict.fromkeys(dnns, client))

    def leave(self, client: Client) -> None:
        """The client hears of nothing more."""
        self._clients.remove(client)
        self._owners = {dnn: each for dnn, each in self._owners.items() if each is not client}
        self._jobs = {job: each for job, each in self._jobs.items() if each[0] is not client}

    @property
    def in_flight(self) -> int:
        """How many jobs have begun of which there is no result yet."""
        return len(self._jobs)

    # --- to the coordinator ------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Tell the coordinator what has happened, and have its answer carried out."""
        self._carry_out(self.receive(event, self.clock()))

    def do(self, what: Callable[[int], list[Action]]) -> None:
        """Have carried out what a frame loop answers: ``what(now_ns)``."""
        self._carry_out(what(self.clock()))

    def receive(self, event: Event, now_ns: int) -> list[Action]:
        """What the coordinator answers, which frame loops hear through this too: so all that is
        told is observed, and every decision is timed."""
        return self._timed(event, now_ns)

    def wake(self, now_ns: int) -> list[Action]:
        """``receive`` for what is due without an event."""
        return self._timed(None, now_ns)

    def _timed(self, event: Event | None, now_ns: int) -> list[Action]:
        coordinator = self.coordinator
        decisions, began_ns = coordinator.decisions, self.clock()
        actions = coordinator.wake(now_ns) if event is None else coordinator.receive(event, now_ns)
        took_ns = self.clock() - began_ns
        for observe in self.observers:
            observe(now_ns, event, actions)
        if coordinator.decisions != decisions:
            for client in self._clients:
                client.decided(took_ns)
            if took_ns > SLOW_DECISION_NS:
                actions = [*actions, *self.receive(SlowDecision(took_ns), self.clock())]
        return actions

    def next_wakeup_ns(self) -> int | None:
        """When ``wake`` is due at the latest."""
        return self.coordinator.next_wakeup_ns()

    def _carry_out(self, actions: list[Action]) -> None:
        if not actions:
            return
        self.executor.execute(actions)
        for action in actions:
            if isinstance(action, RunTogether):
                owners = dict.fromkeys(self._owners.get(dnn) for dnn in action.dnns)
                for owner in filter(None, owners):
                    owner.acted(action)
                continue
            client = self._owners.get(action.dnn)
            if client is None:
                continue
            if isinstance(action, Prepare):
                self._jobs[action.job] = client, action.dnn
            elif isinstance(action, Drop):
                self._jobs.pop(action.job, None)
            client.acted(action)

    # --- from the workers --------------------------------------------------------------------

    def serve_until(self, deadline_ns: int, *, results: bool = True) -> None:
        """Handle what workers report until then, never past it. Without ``results`` those wait for
        the frame to be presented: what an app does with one may take a while."""
        while True:
            now_ns, until_ns = self.clock(), deadline_ns - SPIN_NS
            if now_ns >= until_ns:  # first: whatever wants to be woken all the time
                break
            wake_ns = self.coordinator.next_wakeup_ns()
            if wake_ns is not None and wake_ns <= now_ns:
                self._carry_out(self.wake(now_ns))
                continue
            if wake_ns is not None:
                until_ns = min(until_ns, wake_ns)
            try:
                message = self._inbox.get(timeout=(until_ns - now_ns) / 1e9)
            except queue.Empty:
                continue
            self._take(message, results=results)

    def serve_one(self, deadline_ns: int) -> None:
        """Handle what is reported next, or due, if it comes until then."""
        wake_ns = self.catch_up_timers()
        until_ns = deadline_ns if wake_ns is None else min(deadline_ns, wake_ns)
        try:
            message = self._inbox.get(timeout=max(until_ns - self.clock(), 0) / 1e9)
        except queue.Empty:
            return
        self._take(message, results=True)

    def catch_up(self, *, results: bool = False) -> None:
        """Tell what happened while this thread was busy with a frame: a job may wait for the
        answer, and the choice of what to do with a gap should know of it. Results can wait."""
        for _ in range(self._inbox.qsize()):
            with contextlib.suppress(queue.Empty):
                self._take(self._inbox.get_nowait(), results=results)

    def deliver(self) -> None:
        """Hand out the results that have waited."""
        while self._later:
            self._deliver(self._later.popleft())

    def catch_up_timers(self) -> int | None:
        """Do what is due by now; returns when something will be, if anything."""
        now_ns = self.clock()
        while (wake_ns := self.next_wakeup_ns()) is not None and wake_ns <= now_ns:
            self._carry_out(self.wake(now_ns))
        return wake_ns

    def _take(self, message: Message, *, results: bool) -> None:
        if isinstance(message, partial):
            message()
            return
        if isinstance(message, InferenceRequested) and message.dnn not in self._owners:
            return  # its session has been closed, and has said so
        if isinstance(message, Result):
            if results:
                self._deliver(message)
            else:
                self._later.append(message)
            return
        if isinstance(message, ChunkFinished):
            owner, _ = self._jobs.get(message.job, (None, ""))
            for client in self._clients:
                client.worked(message.processor, message.elapsed_ns, client is owner)
        self.tell(message)
        if isinstance(message, JobFailed) and message.job in self._jobs:  # it had ended before
            client, dnn = self._jobs.pop(message.job)
            client.failed(message.job, dnn, message.error)

    def _deliver(self, result: Result) -> None:
        if self._jobs.pop(result.finish.job, None) is None:
            return  # it was given up: its thread hung, and has come back
        client = self._owners.get(result.dnn)
        if client is not None:  # else its session has been closed
            client.delivered(result)
