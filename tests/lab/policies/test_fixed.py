from __future__ import annotations

from heimdall.lab.policies.fixed import Fixed
from tests.views import still_view


def chosen(policy, view, now_ns=0):
    choice = policy.select(view, now_ns)
    return (
        [(each.job, each.processor, each.end_op) for each in choice.assignments] if choice else []
    )


def test_each_network_waits_for_its_fastest_processor(queues):
    costs = queues.costs({"cpu": (8,), "npu": (5,)})
    jobs = [queues.request(id, costs) for id in range(3)]
    assert chosen(Fixed(), queues.view(*jobs)) == [(0, "npu", 1)]


def test_a_network_runs_one_request_at_a_time(queues):
    costs = queues.costs({"cpu": (8,)})
    one, other = queues.request(1, costs, dnn="net"), queues.request(2, costs, dnn="net")
    view = queues.view(one, other, idle=("cpu", "cpu"))
    assert chosen(Fixed(), view) == [(1, "cpu", 1)]
    view = still_view([other], ("cpu",), {"cpu": 0}, running=[one])
    assert chosen(Fixed(), view) == []


def test_it_goes_by_the_profile_whatever_is_learnt(queues):
    costs = queues.costs({"cpu": (8,), "npu": (5,)})
    for _ in range(50):
        costs.learn_on("npu", 0, 1, 100)
    assert chosen(Fixed(), queues.view(queues.request(1, costs))) == [(1, "npu", 1)]


def test_a_mapping_goes_before_speed(queues):
    costs = queues.costs({"cpu": (8,), "npu": (5,)})
    job = queues.request(1, costs, dnn="net")
    assert chosen(Fixed({"net": "cpu"}), queues.view(job)) == [(1, "cpu", 1)]


def test_only_a_lost_processor_is_not_waited_for(queues):
    costs = queues.costs({"cpu": (8,), "npu": (5,)})
    view = queues.view(queues.request(1, costs), idle=("cpu",), free_ns={"cpu": 0})
    assert chosen(Fixed(), view) == [(1, "cpu", 1)]


def test_a_network_that_no_processor_supports_as_a_whole_goes_from_one_to_the_other(queues):
    costs = queues.costs({"cpu": (None, 8), "npu": (5, None)})
    policy = Fixed({"net1": "npu"})
    assert chosen(policy, queues.view(queues.request(1, costs))) == [(1, "npu", 1)]
    assert chosen(policy, queues.view(queues.request(1, costs, next_op=1))) == [(1, "cpu", 2)]


def test_it_knows_of_no_deadline(queues):
    late = queues.request(1, queues.costs({"cpu": (8,), "npu": (5,)}), 1)
    assert not Fixed().hopeless(late, 500)
