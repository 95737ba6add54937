"""A policy that may be at fault: it raises, chooses what cannot be, or takes too long. Frames and
networks go on.

Where a policy is at fault, another answers in its place, and after ``MOST_IN_A_ROW`` times in a row
for good. Time is an argument here too: the coordinator's driver tells of a decision that took
too long (SlowDecision).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from heimdall.schedulers.base import JobView, Scheduler
from heimdall.system.faults import Faults, say
from heimdall.vocabulary.events import Event

MOST_IN_A_ROW = 5

Answer = TypeVar("Answer")


class Supervised:
    """``policy`` decides, as long as it can; ``stand_in`` where it cannot. ``faults``: what it did
    wrong, in words; ``observes``: the policy listens to events; ``replaced``: the name of one that
    the stand-in has replaced for good."""

    replaced = ""

    def __init__(self, policy: Scheduler, stand_in: Scheduler, faults: Faults) -> None:
        self.policy, self.stand_in, self.faults = policy, stand_in, faults
        self.observes = type(policy).observe is not Scheduler.observe
        self._in_a_row: Counter[str] = Counter()  # by what is asked of it
        self._slow_in_a_row = 0
        self._slow_at = -1  # how many decisions there had been

    def decide(self, answer: Callable[..., Answer], *of: Any) -> Answer:
        """What ``answer(policy, *of)`` makes of the policy's choice; where that raises, of the
        stand-in's."""
        if self.policy is not self.stand_in:
            try:
                found = answer(self.policy, *of)
            except Exception as error:
                self._fault("select", error)
            else:
                if self._in_a_row:
                    self._in_a_row.pop("select", None)
                return found
        return answer(self.stand_in, *of)

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        """See ``Scheduler.place``; at the end of the queue where it names no place there."""
        try:
            index = self.policy.place(job, queue, now_ns)
            if not 0 <= index <= len(queue):
                raise ValueError("placed a job outside of the queue")
        except Exception as error:
            self._fault("place", error)
            return len(queue)
        self._right("place")
        return index

    def hopeless(self, job: JobView, now_ns: int) -> str:
        """See ``Scheduler.hopeless``."""
        return self._asked("hopeless", self.policy.hopeless, "", job, now_ns)

    def preempts(self, job: JobView, running: JobView) -> bool:
        """See ``Scheduler.preempts``."""
        return self._asked("preempts", self.policy.preempts, False, job, running)

    def observe(self, event: Event) -> None:
        """Let the policy hear of an event."""
        self._asked("observe", self.policy.observe, None, event)

    def was_slow(self, took_ns: int, decisions: int) -> None:
        """The last of so many decisions took too long: frames wait for it. Once may be the
        machine's fault; again and again is the policy's."""
        again = decisions - self._slow_at <= 1
        self._slow_at = decisions
        self._slow_in_a_row = self._slow_in_a_row + 1 if again else 1
        if self._slow_in_a_row == MOST_IN_A_ROW and self.policy is not self.stand_in:
            self._replace(f"took {took_ns / 1e6:.0f} ms to decide", None)

    def _asked(self, what: str, method: Callable[..., Answer], instead: Answer, *of: Any) -> Answer:
        """What a method of the policy says; ``instead`` where it raises."""
        try:
            found = method(*of)
        except Exception as error:
            self._fault(what, error)
            return instead
        self._right(what)
        return found

    def _right(self, what: str) -> None:
        if self._in_a_row:
            self._in_a_row.pop(what, None)

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
        self.replaced = self.policy.name
        self.policy, self.observes = self.stand_in, False
