"""Faults of a scheduling policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from heimdall.coordinator.supervised import and_elsewhere
from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.moment import Moment
from heimdall.schedulers import kind_of
from heimdall.schedulers.base import Assignment, Choice, View

NAME = "faulty"
SLOW_S = 0.02
_NO_JOB = -1

Select = Callable[[], Choice | None]


def _instead(act: Callable[[Select], Any]) -> Callable[[Moment], None]:
    """The app's policy, but ``act(select)`` instead of its choice while the fault is there. It
    decides for all processors, and is a policy of its own: what stands in for it is whole."""

    def inject(moment: Moment) -> None:
        kind: Any = kind_of(moment.app.scheduler)

        def select(self: Any, view: View, now_ns: int) -> Any:
            choose = partial(kind.select, self, view, now_ns)
            if kind.binds:
                choose = partial(and_elsewhere, partial(kind.select, self), view, now_ns)
            if not moment.active:
                return choose()
            moment.acted()
            return act(choose)

        faulty = type("Faulty", (kind,), {"name": NAME, "processors": None, "select": select})
        moment.app.scheduler = faulty  # type: ignore[misc]  # of this very app

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
