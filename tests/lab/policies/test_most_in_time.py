from __future__ import annotations

from dataclasses import replace

from heimdall.lab.policies.most_in_time import MostInTime
from heimdall.schedulers.expected import StageCosts


def chosen(view, now_ns=0, policy=None):
    choice = (policy or MostInTime()).select(view, now_ns)
    return (
        [(each.job, each.end_op, each.processor) for each in choice.assignments] if choice else []
    )


def test_the_earliest_deadline_has_the_fastest_processor(queues):
    costs = queues.costs({"gpu": (4,)})
    first, urgent = queues.request(1, costs, 100), queues.request(2, costs, 50)
    assert chosen(queues.view(first, urgent, idle=("gpu",))) == [(2, 1, "gpu")]


def test_of_jobs_that_cannot_all_be_in_time_the_one_with_the_largest_share_is_left_out(queues):
    long, short = queues.costs({"gpu": (60,)}), queues.costs({"gpu": (30,)})
    heavy = queues.request(1, long, 80)
    light = [queues.request(id, short, 85) for id in (2, 3)]
    assert chosen(queues.view(heavy, *light, idle=("gpu",)))[0][0] == 2


def test_a_share_is_of_a_models_period_not_of_what_is_left_of_it(queues):
    """A request that follows another has less time than its model's period."""
    costs = queues.costs({"gpu": (30,)})
    policy = MostInTime()
    policy.select(queues.view(queues.request(1, costs, 100, dnn="gaze"), idle=("gpu",)), 0)
    gaze = queues.request(2, costs, 35, dnn="gaze")  # 0.3 of its period
    other = queues.request(3, costs, 40, dnn="hands")  # 0.75
    assert chosen(queues.view(gaze, other, idle=("gpu",)), policy=policy) == [(2, 1, "gpu")]


def test_what_is_left_out_runs_where_nothing_else_would(queues):
    costs = queues.costs({"gpu": (60,)})
    assert chosen(queues.view(queues.request(1, costs, 50), idle=("gpu",))) == [(1, 1, "gpu")]


def test_until_its_turn_a_job_runs_elsewhere_as_far_as_it_comes(queues):
    first = queues.costs({"cpu": (900,), "gpu": (25,)})
    second = queues.costs({"cpu": (10, 10, 10, 10), "gpu": (5, 5, 5, 5)})
    jobs = queues.request(1, first, 500), queues.request(2, second, 600)
    view = queues.view(*jobs, idle=("gpu", "cpu"))
    assert chosen(view) == [(1, 1, "gpu"), (2, 2, "cpu")]


def test_a_processor_that_runs_whole_networks_only_is_given_no_part_of_one(queues):
    plan = queues.costs({"gpu": (30, 30)}).plan
    fast = StageCosts(replace(plan, on=(), op_ns=(30, 30), cpu_ns=20))
    assert chosen(queues.view(queues.request(1, fast), idle=("cpu",))) == [(1, 2, "cpu")]


def test_a_gap_is_as_far_as_a_job_runs_and_frames_make_all_take_longer(queues):
    costs = queues.costs({"gpu": (10, 10, 10, 10)})
    view = queues.view(queues.request(1, costs), idle=("gpu",))._replace(gap_end_ns=25)
    assert chosen(view) == [(1, 2, "gpu")]
    assert chosen(view._replace(gap_end_ns=3)) == [(1, 1, "gpu")]  # one op, at least


def test_a_job_that_is_too_late_is_not_dropped(queues):
    job = queues.request(1, queues.costs({"gpu": (60,)}), 50)
    assert MostInTime().hopeless(job, 1000) == ""
