from __future__ import annotations

from heimdall.lab.policies.round_robin import RoundRobin


def chosen(view, now_ns=0):
    choice = RoundRobin().select(view, now_ns)
    return [(each.job, each.processor, each.end_op) for each in choice.assignments]


def test_every_idle_processor_has_the_next_job_fast_or_slow(queues):
    costs = queues.costs({"cpu": (900,), "npu": (5,)})
    jobs = [queues.request(id, costs) for id in range(3)]
    assert chosen(queues.view(*jobs)) == [(0, "cpu", 1), (1, "npu", 1)]


def test_it_goes_as_far_as_it_is_supported(queues):
    costs = queues.costs({"cpu": (9, 9, 9), "npu": (1, 1, None)})
    assert chosen(queues.view(queues.request(1, costs), idle=("npu",))) == [(1, "npu", 2)]


def test_a_job_that_a_processor_does_not_support_is_passed_over(queues):
    plain = queues.costs({"cpu": (9,), "npu": (5,)})
    odd = queues.costs({"cpu": (9,), "npu": (None,)})
    jobs = queues.request(1, odd), queues.request(2, plain)
    assert chosen(queues.view(*jobs, idle=("npu", "cpu"))) == [(2, "npu", 1), (1, "cpu", 1)]
