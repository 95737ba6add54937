"""What policies share that serve requests in one order."""

from __future__ import annotations

import pytest

from heimdall.schedulers.fcfs import Fcfs


def chosen(view, now_ns=0):
    choice = Fcfs().select(view, now_ns)
    return [] if choice is None else [(a.job, a.processor, a.end_op) for a in choice.assignments]


def test_the_first_goes_where_it_is_done_soonest(queues):
    costs = queues.costs({"cpu": (9, 9), "npu": (2, 2)})
    assert chosen(queues.view(queues.request(1, costs))) == [(1, "npu", 2)]


def test_who_would_be_done_sooner_on_a_busy_processor_waits_for_it(queues):
    costs = queues.costs({"cpu": (9, 9), "npu": (2, 2)})
    free = {"cpu": 0, "npu": 10}
    assert chosen(queues.view(queues.request(1, costs), idle=("cpu",), free_ns=free)) == []
    free = {"cpu": 0, "npu": 15}
    view = queues.view(queues.request(1, costs), idle=("cpu",), free_ns=free)
    assert chosen(view) == [(1, "cpu", 2)]


def test_who_waits_for_a_processor_keeps_its_turn_there(queues):
    """The second would be done at 4 on the NPU if the first did not wait for it: so it takes 9 on
    the CPU."""
    costs = queues.costs({"cpu": (9,), "npu": (2,)})
    first = queues.request(1, queues.costs({"cpu": (90,), "npu": (6,)}))
    view = queues.view(first, queues.request(2, costs), idle=("cpu",), free_ns={"cpu": 0, "npu": 2})
    assert chosen(view) == [(2, "cpu", 1)]


def test_every_lane_gets_one(queues):
    costs = queues.costs({"cpu": (9,)})
    jobs = [queues.request(id, costs) for id in range(3)]
    view = queues.view(*jobs, idle=("cpu", "cpu"), free_ns={"cpu": 0})
    assert chosen(view) == [(0, "cpu", 1), (1, "cpu", 1)]


@pytest.mark.parametrize(
    ("next_op", "expected"), [(0, (1, "npu", 2)), (2, (1, "cpu", 4)), (3, (1, "npu", 4))]
)
def test_it_runs_as_far_as_a_processor_supports_it(queues, next_op, expected):
    """The NPU lacks the third op, the CPU the second."""
    costs = queues.costs({"cpu": (9, None, 9, 9), "npu": (2, 2, None, 2)})
    assert chosen(queues.view(queues.request(1, costs, next_op=next_op))) == [expected]


def test_what_no_processor_supports_leaves_room_for_others(queues):
    alien = queues.request(1, queues.costs({"dsp": (1,)}))
    known = queues.request(2, queues.costs({"cpu": (9,)}))
    assert chosen(queues.view(alien, known, idle=("cpu",))) == [(2, "cpu", 1)]
