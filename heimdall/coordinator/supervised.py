"""A policy that may be at fault: it raises, chooses what cannot be or nothing at all, or takes too
long. Frames and networks go on.

Where a policy is at fault, another answers in its place, and after ``MOST_IN_A_ROW`` times in a row
for good. Time is an argument here too: the coordinator's driver tells of a decision that took
too long (SlowDecision).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from operator import index
from typing import Any, TypeVar

from heimdall.schedulers.base import Assignment, Choice, JobView, Scheduler, View
from heimdall.schedulers.fcfs import Fcfs
from heimdall.schedulers.max_total import MaxTotal
from heimdall.system.faults import Faults, say
from heimdall.vocabulary.events import Event
from heimdall.vocabulary.processors import GPU
from heimdall.vocabulary.reasons import FIRST_COME

MOST_IN_A_ROW = 5
# Slow decisions count while they are among so many, as a frame waits for each: of every sixth, that
# is. Once may be the machine's fault.
_LATELY = 30
_AGAIN = 2
# A policy may wait for a model's request or for a processor, but none that is bundled waits as long
# where another one would go on.
_SILENT_NS = 1_000_000_000


class Bound(MaxTotal):
    """Decides for any processors in place of a policy that binds DNNs to them: for the GPU as
    max-total, elsewhere first come, first served, as where no policy decides."""

    def select(self, view: View, now_ns: int) -> Choice | None:
        return and_elsewhere(super().select, view, now_ns)


def and_elsewhere(
    select: Callable[[View, int], Choice | None], view: View, now_ns: int
) -> Choice | None:
    """What ``select`` chooses for the GPU, and what is bound to other idle processors."""
    found = select(view, now_ns) if GPU in view.idle else None
    idle = [each for each in view.idle if each != GPU]
    if not idle:
        return found
    others: list[Assignment] = []
    for job in sorted(view.ready, key=lambda job: (job.enqueued_ns, job.id)):
        if job.processor in idle:
            others.append(Assignment(job.id, view.longest(job, job.processor), job.processor))
            idle.remove(job.processor)
    if found is None:
        return Choice(tuple(others), FIRST_COME)
    return replace(found, assignments=(*found.assignments, *others))


def stand_in_for(policy: Scheduler) -> Scheduler:
    """A policy of the same kind, for the same processors."""
    stand_in: Scheduler = Bound() if policy.binds else Fcfs()
    stand_in.processors = policy.processors
    return stand_in


Answer = TypeVar("Answer")
Checked = TypeVar("Checked", bound="tuple[Choice, Any, Any]")
Ask = Callable[[Scheduler, View, int], "Checked | None"]
Acts = Callable[["Checked | None"], bool]


class Supervised:
    """``policy`` decides, as long as it can; ``stand_in`` where it cannot. ``faults``: what it did
    wrong, in words; ``observes``: the policy listens to events; ``replaced``: the name of one that
    the stand-in has replaced for good; ``due_ns``: when it has been silent for so long that it has
    to be asked though nothing has happened."""

    replaced = ""
    due_ns: float = inf

    def __init__(self, policy: Scheduler, faults: Faults) -> None:
        self.policy, self.stand_in, self.faults = policy, stand_in_for(policy), faults
        self.observes = type(policy).observe is not Scheduler.observe
        self._in_a_row: Counter[str] = Counter()  # by what is asked of it
        self._slow: deque[int] = deque(maxlen=MOST_IN_A_ROW)  # how many decisions there had been
        self._named_slow = False

    def decide(
        self, answer: Ask[Checked], acts: Acts[Checked], view: View, now_ns: int
    ) -> Checked | None:
        """What ``answer(policy, view, now_ns)`` makes of the policy's choice; of the stand-in's
        where that raises, or has chosen nothing for too long. ``acts``: whether an answer starts
        anything."""
        if self.policy is not self.stand_in:
            try:
                found = answer(self.policy, view, now_ns)
            except Exception as error:
                self._fault("select", f"select: {say(error)}", error)
            else:
                if self._in_a_row:
                    self._right("select")
                if found is None or not found[0].assignments:
                    return self._silent(answer, acts, view, now_ns) or found
                if self.due_ns != inf:
                    self.due_ns = inf
                    self._right("silence")
                return found
        return self._instead(answer, view, now_ns)

    def _instead(self, answer: Ask[Checked], view: View, now_ns: int) -> Checked | None:
        """The stand-in's answer."""
        try:
            return answer(self.stand_in, view, now_ns)
        except Exception as error:  # a fault of Heimdall's own: frames go on all the same
            self.faults.report(f"scheduler {self.stand_in.name!r}: {say(error)}", error)
            return None

    def _silent(
        self, answer: Ask[Checked], acts: Acts[Checked], view: View, now_ns: int
    ) -> Checked | None:
        """What starts in spite of a policy that has chosen nothing. It may wait for what it has
        started; what else there is to wait for, the stand-in knows as well."""
        own = self.policy.processors
        if view.away or any(own is None or job.processor in own for job in view.running):
            return None
        if now_ns < self.due_ns:
            self.due_ns = min(self.due_ns, now_ns + _SILENT_NS)
            return None
        found = self._instead(answer, view, now_ns)
        if not acts(found):
            self.due_ns = now_ns + _SILENT_NS
            return None
        jobs = "a job" if len(view.ready) == 1 else f"{len(view.ready)} jobs"
        self._fault("silence", f"chose nothing for 1 s although {jobs} could run")
        return found

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        """See ``Scheduler.place``; at the end of the queue where it names no place there."""
        try:
            place = index(self.policy.place(job, queue, now_ns))
            if not 0 <= place <= len(queue):
                raise ValueError("placed a job outside of the queue")
        except Exception as error:
            self._fault("place", f"place: {say(error)}", error)
            return len(queue)
        self._right("place")
        return place

    def hopeless(self, job: JobView, now_ns: int) -> str:
        """See ``Scheduler.hopeless``."""
        return self._asked("hopeless", text, "", job, now_ns)

    def preempts(self, job: JobView, running: JobView) -> bool:
        """See ``Scheduler.preempts``."""
        return self._asked("preempts", bool, False, job, running)

    def observe(self, event: Event) -> None:
        """Let the policy hear of an event."""
        self._asked("observe", _nothing, None, event)

    def was_slow(self, took_ns: int, decisions: int) -> None:
        """The last of so many decisions took too long: frames wait for it. Once may be the
        machine's fault; again and again is the policy's."""
        if self.policy is self.stand_in:
            return
        self._slow.append(decisions)
        lately = sum(at > decisions - _LATELY for at in self._slow)
        why = f"took {took_ns / 1e6:.0f} ms to decide"
        if lately == MOST_IN_A_ROW:
            self._replace(f"{why}, {lately} times of the last {_LATELY}")
        elif lately == _AGAIN and not self._named_slow:
            self._named_slow = True
            self.faults.report(f"scheduler {self.policy.name!r}: {why}; frames wait for it")

    def _asked(self, what: str, kind: Callable[[Any], Answer], instead: Answer, *of: Any) -> Answer:
        """What a method of the policy says, as what it should be; ``instead`` where it raises."""
        try:
            found = kind(getattr(self.policy, what)(*of))
        except Exception as error:
            self._fault(what, f"{what}: {say(error)}", error)
            return instead
        self._right(what)
        return found

    def _right(self, what: str) -> None:
        if self._in_a_row:
            self._in_a_row.pop(what, None)

    def _fault(self, what: str, why: str, error: Exception | None = None) -> None:
        self._in_a_row[what] += 1
        if self._in_a_row[what] == MOST_IN_A_ROW:
            self._replace(f"{why}, {MOST_IN_A_ROW} times in a row", error)
            return
        name, other = self.policy.name, self.stand_in.name
        self.faults.report(f"scheduler {name!r}: {why}; {other} decides instead", error)

    def _replace(self, why: str, error: Exception | None = None) -> None:
        other = self.stand_in.name
        self.faults.report(
            f"scheduler {self.policy.name!r}: {why}; {other} decides from now on", error
        )
        self.replaced, self.due_ns = self.policy.name, inf
        self.policy, self.observes = self.stand_in, False


def _nothing(found: object) -> None:
    """Whatever it is, nobody has asked for it."""


def text(found: object) -> str:
    """``found``, if it is one; else it raises TypeError."""
    if not isinstance(found, str):
        raise TypeError(f"said {found!r:.80} where a text was asked for")
    return found
