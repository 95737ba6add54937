"""Every decision is timed, whether something has happened or was due."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from heimdall.coordinator import Coordinator
from heimdall.runtime.execution.router import SLOW_DECISION_NS, Inbox, Router
from heimdall.schedulers.base import FreeRanges, wait
from heimdall.vocabulary.events import InputReady, RenderingStopped, SlowDecision
from tests.stages import MS, make_plan, make_stage


class Clock:
    now_ns = 0

    def __call__(self):
        return self.now_ns


class Slow(FreeRanges):
    """Takes its time, and wants to be woken soon."""

    name = "slow"

    def __init__(self, clock, takes_ns):
        self.clock, self.takes_ns = clock, takes_ns

    def select(self, view, now_ns):
        self.clock.now_ns += self.takes_ns
        return wait(self.clock.now_ns + MS)


@pytest.mark.parametrize("takes_ns", [SLOW_DECISION_NS // 2, 4 * SLOW_DECISION_NS])
def test_a_slow_decision_is_told_of_where_it_was_due_as_well(takes_ns):
    clock, nothing = Clock(), Mock()
    policy = Slow(clock, 0)
    coordinator = Coordinator(
        [make_plan("a", make_stage([4]))],
        scheduler=policy,
        frame_interval_ns=33 * MS,
        offload=False,
    )
    router, told = Router(coordinator, nothing, Inbox(), clock), []
    router.observers.append(lambda now_ns, event, actions: told.append(event))
    router.tell(RenderingStopped())
    router.tell(InputReady(0))
    policy.takes_ns = takes_ns
    clock.now_ns += 2 * MS
    router.wake(clock.now_ns)
    slow = [event for event in told if isinstance(event, SlowDecision)]
    assert bool(slow) is (takes_ns > SLOW_DECISION_NS)
    assert {event.took_ns for event in slow} <= {takes_ns}
    if slow:  # each that it was asked for then was as slow, until it was replaced
        assert coordinator.replaced == "slow"
