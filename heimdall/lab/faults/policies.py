"""Faults of a scheduling policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.moment import Moment
from heimdall.schedulers import kind_of
from heimdall.schedulers.base import Assignment, Choice

SLOW_S = 0.02
_NO_JOB = -1

Select = Callable[[], Choice | None]


def _instead(act: Callable[[Select], Any]) -> Callable[[Moment], None]:
    """``act(select)`` where the app's policy is asked to select, while the fault is there."""

    def inject(moment: Moment) -> None:
        policy: Any = kind_of(moment.app.scheduler)
        select = policy.select

        def selected(*args: Any, **more: Any) -> Any:
            if not moment.active:
                return select(*args, **more)
            moment.acted()
            return act(lambda: select(*args, **more))

        policy.select = selected

    return inject


def _raise(select: Select) -> Any:
    raise ValueError("injected: no idea")


def _nonsense(select: Select) -> Any:
    return Choice((Assignment(_NO_JOB, -3, "toaster"),), "injected: nonsense")


def _slowly(select: Select) -> Any:
    time.sleep(SLOW_S)
    return select()


def _nothing(select: Select) -> Any:
    return None


FAULTS = (
    Fault("policy-raises", "The policy raises.", _instead(_raise)),
    Fault("policy-nonsense", "The policy chooses what there is not.", _instead(_nonsense)),
    Fault("policy-slow", f"The policy takes {1000 * SLOW_S:g} ms.", _instead(_slowly)),
    Fault("policy-none", "The policy never chooses anything.", _instead(_nothing)),
)
