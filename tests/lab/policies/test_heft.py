from __future__ import annotations

from heimdall.lab.policies.heft import EarliestFinish


def chosen(view, now_ns=0):
    choice = EarliestFinish().select(view, now_ns)
    return [(each.job, each.processor) for each in choice.assignments] if choice else []


def test_who_would_end_last_chooses_first(queues):
    short = queues.costs({"cpu": (20,), "npu": (5,)})
    long = queues.costs({"cpu": (90,), "npu": (30,)})
    jobs = queues.request(1, short), queues.request(2, long)
    assert chosen(queues.view(*jobs)) == [(2, "npu"), (1, "cpu")]


def test_a_busy_processor_is_kept_for_who_waits_for_it(queues):
    """Job 2 has the NPU next, from 10 to 40: job 1 then does better at once on the CPU."""
    short = queues.costs({"cpu": (35,), "npu": (5,)})
    long = queues.costs({"cpu": (90,), "npu": (30,)})
    free_ns = {"cpu": 0, "npu": 10}
    alone = queues.view(queues.request(1, short), idle=("cpu",), free_ns=free_ns)
    assert chosen(alone) == []  # 15 on the NPU is better
    both = queues.view(
        queues.request(1, short), queues.request(2, long), idle=("cpu",), free_ns=free_ns
    )
    assert chosen(both) == [(1, "cpu")]


def test_jobs_of_one_model_are_spread(queues):
    costs = queues.costs({"cpu": (12,), "npu": (5,)})
    jobs = [queues.request(id, costs, dnn="net") for id in range(3)]
    assert chosen(queues.view(*jobs)) == [(0, "npu"), (2, "cpu")]  # 5, then 10 behind it, then 12
