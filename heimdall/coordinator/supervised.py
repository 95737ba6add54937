"""A policy that may be at fault: it raises, chooses what cannot be, or takes too long. Frames and
networks go on.

Where a policy is at fault, another answers in its place, and after ``MOST_IN_A_ROW`` times in a row
for good. Time is an argument here too: whoever drives the coordinator tells of a decision that took
too long (SlowDecision).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from heimdall.schedulers.base import JobView, Scheduler
from heimdall.schedulers.fcfs import Fcfs
from heimdall.schedulers.max_total import MaxTotal
from heimdall.system.faults import Faults, say
from heimdall.vocabulary.events import Event

MOST_IN_A_ROW = 5

Answer = TypeVar("Answer")


class Supervised:
    """``policy`` decides, as long as it can; ``stand_in`` where it cannot. ``faults``: what it did
    wrong, in words."""

    def __init__(self, policy: Scheduler, faults: Faults) -> None:
        self.policy, self.faults = policy, faults
        self.stand_in: Scheduler = MaxTotal() if policy.binds else Fcfs()
        self._observes = type(policy).observe is not Scheduler.observe
        self._in_a_row: Counter[str] = Counter()  # by what is asked of it
        self._slow_in_a_row = 0
        self._slow_at = -1  # how many decisions there had been

    def decide(self, answer: Callable[[Scheduler], Answer]) -> Answer:
        """What ``answer`` makes of the policy's choice; where that raises, of the stand-in's."""
        if self.policy is not self.stand_in:
            try:
                found = answer(self.policy)
            except Exception as error:
                self._fault("select", error)
            else:
                self._in_a_row["select"] = 0
                return found
        return answer(self.stand_in)

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        """See ``Scheduler.place``; at the end of the queue where it names no place there."""

        def within() -> int:
            index = self.policy.place(job, queue, now_ns)
            if not 0 <= index <= len(queue):
                raise ValueError("placed a job outside of the queue")
            return index

        return self._try("place", within, len(queue))

    def hopeless(self, job: JobView, now_ns: int) -> str:
        """See ``Scheduler.hopeless``."""
        return self._try("hopeless", lambda: self.policy.hopeless(job, now_ns), "")

    def preempts(self, job: JobView, running: JobView) -> bool:
        """See ``Scheduler.preempts``."""
        return self._try("preempts", lambda: self.policy.preempts(job, running), False)

    def observe(self, event: Event) -> None:
        """Let it hear of an event, if it listens."""
        if self._observes:
            self._try("observe", lambda: self.policy.observe(event), None)

    def was_slow(self, took_ns: int, decisions: int) -> None:
        """The last of so many decisions took too long: frames wait for it. Once may be the
        machine's fault; again and again is the policy's."""
        again = decisions - self._slow_at <= 1
        self._slow_at = decisions
        self._slow_in_a_row = self._slow_in_a_row + 1 if again else 1
        if self._slow_in_a_row == MOST_IN_A_ROW and self.policy is not self.stand_in:
            self._replace(f"took {took_ns / 1e6:.0f} ms to decide", None)

    def _try(self, what: str, call: Callable[[], Answer], otherwise: Answer) -> Answer:
        try:
            found = call()
        except Exception as error:
            self._fault(what, error)
            return otherwise
        self._in_a_row[what] = 0
        return found

    def _fault(self, what: str, error: Exception) -> None:
        self._in_a_row[what] += 1
        if self._in_a_row[what] == MOST_IN_A_ROW:
            self._replace(f"{what}: {say(error)}", error)
            return
        name, other = self.policy.name, self.stand_in.name
        message = f"scheduler {name!r}: {what}: {say(error)}; {other} decides instead"
        self.faults.report(message, error)

    def _replace(self, why: str, error: Exception | None) -> None:
        self.faults.report(
            f"scheduler {self.policy.name!r}: {why}, {MOST_IN_A_ROW} times in a row; "
            f"{self.stand_in.name} decides from now on",
            error,
        )
        self.policy, self._observes = self.stand_in, False
