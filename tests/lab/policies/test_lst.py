from __future__ import annotations

from heimdall.lab.policies.lst import LeastSlack


def chosen(view, now_ns=0):
    choice = LeastSlack().select(view, now_ns)
    return [(each.job, each.processor, each.end_op) for each in choice.assignments]


def test_figure_12(queues):
    """Job 1 has 80 - 10 = 70 left, job 2 has 90: {A, B} of job 1 gets the NPU."""
    one = queues.costs({"cpu": (9, 9, 4), "npu": (3, 3, None)})
    two = queues.costs({"cpu": (40, 40), "npu": (5, 5)})
    jobs = queues.request(2, two, 100), queues.request(1, one, 80)
    free_ns = {"cpu": 0, "npu": 0}
    assert chosen(queues.view(*jobs, idle=("npu",), free_ns=free_ns)) == [(1, "npu", 2)]


def test_who_has_the_least_slack_chooses_first(queues):
    costs = queues.costs({"cpu": (8,), "npu": (5,)})
    jobs = queues.request(1, costs, 100), queues.request(2, costs, 20)
    assert chosen(queues.view(*jobs)) == [(2, "npu", 1), (1, "cpu", 1)]


def test_slack_is_of_what_is_expected_not_of_the_deadline_alone(queues):
    long, short = queues.costs({"npu": (60,)}), queues.costs({"npu": (5,)})
    jobs = queues.request(1, short, 50), queues.request(2, long, 80)  # 45 and 20
    assert chosen(queues.view(*jobs, idle=("npu",))) == [(2, "npu", 1)]


def test_waiting_for_a_busy_processor_leaves_the_idle_one_to_others(queues):
    fussy, easy = queues.costs({"cpu": (90,), "npu": (5,)}), queues.costs({"cpu": (8,)})
    jobs = queues.request(1, fussy, 50), queues.request(2, easy, 500)
    view = queues.view(*jobs, idle=("cpu",), free_ns={"cpu": 0, "npu": 20})
    assert chosen(view) == [(2, "cpu", 1)]


def test_what_is_left_of_a_job_goes_to_the_head(queues):
    costs = queues.costs({"cpu": (8, 8)})
    queue = [queues.request(id, costs) for id in range(3)]
    assert LeastSlack().place(queues.request(7, costs), queue, 0) == 3
    assert LeastSlack().place(queues.request(7, costs, next_op=1), queue, 0) == 0
