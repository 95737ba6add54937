"""Every decision is timed, whether something has happened or was due."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.supervised import MOST_IN_A_ROW
from heimdall.runtime.execution.router import SLOW_DECISION_NS, Inbox, Router
from heimdall.schedulers.base import FreeRanges, wait
from heimdall.schedulers.fcfs import Fcfs
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
    before = coordinator.decisions
    clock.now_ns += 2 * MS
    router.wake(clock.now_ns)
    assert coordinator.decisions == before + 1  # hearing that it was slow is no reason to ask again
    slow = [event for event in told if isinstance(event, SlowDecision)]
    assert bool(slow) is (takes_ns > SLOW_DECISION_NS)
    assert {event.took_ns for event in slow} <= {takes_ns}
    assert len(slow) <= 1
    while slow and not coordinator.replaced:
        clock.now_ns += 2 * MS
        router.wake(clock.now_ns)
    assert len([event for event in told if isinstance(event, SlowDecision)]) in (0, MOST_IN_A_ROW)
    # What takes its place is asked at once, however long the other one wanted to wait.
    assert coordinator.replaced == ("slow" if slow else "")


def test_a_stand_in_that_is_slow_itself_is_not_asked_again_and_again(monkeypatch):
    """It was, one call within the other: thousands of requests that wait make any policy slow."""
    clock, nothing = Clock(), Mock()
    policy = Slow(clock, 20 * MS)
    coordinator = Coordinator(
        [make_plan("a", make_stage([4]))],
        scheduler=policy,
        frame_interval_ns=33 * MS,
        offload=False,
    )
    select = Fcfs.select

    def slow_select(stand_in, view, now_ns):
        clock.now_ns += 20 * MS
        select(stand_in, view, now_ns)
        return wait(clock.now_ns + MS)

    monkeypatch.setattr(Fcfs, "select", slow_select)
    router = Router(coordinator, nothing, Inbox(), clock)
    router.tell(RenderingStopped())
    router.tell(InputReady(0))
    for _ in range(2 * MOST_IN_A_ROW):
        before = coordinator.decisions
        clock.now_ns += 2 * MS
        router.wake(clock.now_ns)
        assert coordinator.decisions - before in (1, 2)  # the stand-in, when it takes over
    assert coordinator.replaced == "slow"
