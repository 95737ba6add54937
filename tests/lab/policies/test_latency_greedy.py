from __future__ import annotations

from heimdall.lab.policies.latency_greedy import LatencyGreedy


def chosen(view, now_ns=0):
    choice = LatencyGreedy().select(view, now_ns)
    return (
        [(each.job, each.end_op, each.processor) for each in choice.assignments] if choice else []
    )


def test_each_processor_takes_what_it_ends_soonest_whole(queues):
    short = queues.costs({"cpu": (5, 5), "gpu": (4, 4)})
    long = queues.costs({"cpu": (9, 9), "gpu": (20, 20)})
    view = queues.view(queues.request(1, long), queues.request(2, short), idle=("gpu", "cpu"))
    assert chosen(view) == [(2, 2, "gpu"), (1, 2, "cpu")]


def test_deadlines_do_not_matter_and_of_equal_ones_the_first_goes_first(queues):
    costs = queues.costs({"gpu": (4,)})
    late, soon = queues.request(1, costs), queues.request(2, costs)
    assert chosen(queues.view(late, soon, idle=("gpu",))) == [(1, 1, "gpu")]


def test_a_processor_that_runs_none_of_them_stays_idle(queues):
    costs = queues.costs({"gpu": (4,), "npu": (None,)})
    assert chosen(queues.view(queues.request(1, costs), idle=("npu",))) == []
