"""Whether tasks with fixed priorities, none of which is interrupted, end before their deadlines:
what can be said before anything runs, from how long each takes alone and how often it comes.

Response times follow the classical analysis (George, Rivierre and Spuri, INRIA RR-2966, 1996): a
task waits for the longest of those below it, which has just begun, and for all that come above it
until it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from statistics import fmean

MOST = 3.0  # deadlines: of a response time, beyond which it does not matter
_ROUNDS = 1000  # of the analysis, by which times that end have ended


@dataclass(frozen=True)
class Task:
    """One that is asked for every ``period_ns``."""

    takes_ns: int
    period_ns: float
    deadline_ns: int


def responses(tasks: Sequence[Task], *, blocked: bool = True) -> list[float]:
    """Each task's longest response time over its deadline, at most ``MOST``; those of the highest
    priority first. ``blocked``: a lower task that has begun is waited for."""
    found = []
    for index, task in enumerate(tasks):
        above, below = tasks[:index], tasks[index + 1 :]
        waits_ns = first_ns = max((each.takes_ns for each in below), default=0) if blocked else 0
        for _ in range(_ROUNDS):
            if waits_ns + task.takes_ns >= MOST * task.deadline_ns:
                break
            before_ns, waits_ns = waits_ns, first_ns
            for each in above:
                waits_ns += (floor(before_ns / each.period_ns) + 1) * each.takes_ns
            if waits_ns == before_ns:
                break
        found.append(min((waits_ns + task.takes_ns) / task.deadline_ns, MOST))
    return found


def late_share(tasks: Sequence[Task]) -> float:
    """The share of deadlines that are missed if each task that may respond so many times too late
    is in time once in as many: a guess, which says of two plans that fail which fails less."""
    return fmean(max(0.0, 1 - 1 / each) for each in responses(tasks)) if tasks else 0.0
