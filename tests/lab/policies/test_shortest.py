from __future__ import annotations

from heimdall.lab.policies.shortest import ShortestLatency


def chosen(view, now_ns=0):
    choice = ShortestLatency().select(view, now_ns)
    return [(each.job, each.processor) for each in choice.assignments] if choice else []


def test_jobs_choose_in_their_order(queues):
    short = queues.costs({"cpu": (20,), "npu": (5,)})
    long = queues.costs({"cpu": (90,), "npu": (30,)})
    jobs = queues.request(1, short), queues.request(2, long)
    assert chosen(queues.view(*jobs)) == [(1, "npu")]  # 35 there is better than 90


def test_who_waits_for_a_processor_has_it_before_later_ones(queues):
    costs = queues.costs({"cpu": (17,), "npu": (5,)})
    jobs = [queues.request(id, costs) for id in range(3)]
    view = queues.view(*jobs, idle=("cpu",), free_ns={"cpu": 0, "npu": 3})
    assert chosen(view) == [(2, "cpu")]  # 8 and 13 on the NPU, then 17 on the CPU instead of 18
