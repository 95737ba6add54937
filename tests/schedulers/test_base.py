"""What every registered scheduler owes the coordinator."""

from __future__ import annotations

import copy

import pytest

from heimdall.errors import ConfigError
from heimdall.schedulers import SCHEDULERS, create
from heimdall.schedulers.base import ANY_EVENT, TRIGGERS

BINDING = [name for name in sorted(SCHEDULERS) if SCHEDULERS[name].binds]
FREE = [name for name in sorted(SCHEDULERS) if not SCHEDULERS[name].binds]


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_it_is_created_by_its_name(name):
    scheduler = create(name)
    assert type(scheduler) is SCHEDULERS[name]
    assert scheduler.triggers <= ANY_EVENT


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_it_places_jobs_within_the_queue(name, queues):
    costs = queues.costs({"cpu": (9, 9), "npu": (2, None)})
    queue = [queues.request(id, costs) for id in range(3)]
    for next_op in (0, 1):
        job = queues.request(7, costs, next_op=next_op)
        assert 0 <= create(name).place(job, queue, 0) <= len(queue)


def test_what_policies_see_cannot_be_changed(moment):
    job = moment.job("a", age_ms=10)
    for value in (job, moment.view(job)):
        for field in value._fields:
            with pytest.raises(AttributeError):
                setattr(value, field, None)


# Those that bind a DNN to a processor.


@pytest.mark.parametrize("name", BINDING)
def test_it_chooses_a_job_of_the_view_and_says_why(name, moment):
    jobs = [moment.job(each, age_ms=age) for each, age in (("a", 10), ("b", 700), ("c", 990))]
    assert create(name).triggers <= TRIGGERS
    choice = create(name).select(moment.view(*jobs), moment.now_ns)
    (assignment,) = choice.assignments
    assert assignment.job in {job.id for job in jobs}
    assert choice.reason


@pytest.mark.parametrize("name", BINDING)
def test_it_repeats_itself(name, moment):
    jobs = [moment.job(each, age_ms=age) for each, age in (("a", 10), ("b", 300))]
    view, scheduler = moment.view(*jobs), create(name)
    first = scheduler.select(view, moment.now_ns)
    assert scheduler.select(view, moment.now_ns) == first


@pytest.mark.parametrize("name", BINDING)
def test_a_single_job_always_runs(name, moment):
    job = moment.job("only", age_ms=1)
    assert create(name).select(moment.view(job), moment.now_ns).assignments[0].job == job.id


# Those whose ranges choose a processor anew.


@pytest.mark.parametrize("name", FREE)
def test_it_gives_each_idle_lane_a_range_that_it_supports_and_says_why(name, queues):
    costs = queues.costs({"cpu": (9, 9, 9), "npu": (2, None, 2)})
    jobs = [queues.request(id, costs, next_op=id % 3) for id in range(6)]
    choice = create(name).select(queues.view(*jobs, idle=("cpu", "cpu", "npu")), 0)
    assert choice.reason
    lanes = [each.processor for each in choice.assignments]
    assert 0 < len(lanes) == len({each.job for each in choice.assignments})
    assert lanes.count("npu") <= 1
    for each in choice.assignments:
        assert costs.on_ns(each.processor, jobs[each.job].next_op, each.end_op) is not None


@pytest.mark.parametrize("name", FREE)
def test_it_leaves_what_no_idle_processor_supports(name, queues):
    costs = queues.costs({"cpu": (9,), "npu": (None,)})
    busy = queues.view(queues.request(1, costs), idle=("npu",), free_ns={"cpu": 50, "npu": 0})
    choice = create(name).select(busy, 0)
    assert choice is None or not choice.assignments


@pytest.mark.parametrize("name", FREE)
def test_it_changes_no_list_of_the_view_and_repeats_itself(name, queues):
    costs, scheduler = queues.costs({"cpu": (9, 9), "npu": (2, None)}), create(name)
    view = queues.view(*[queues.request(id, costs, dnn="net") for id in range(3)])
    before = copy.copy(view.ready), dict(view.free_ns), tuple(view.idle)
    first = scheduler.select(view, 0)
    assert scheduler.select(view, 0) == first
    assert (view.ready, dict(view.free_ns), tuple(view.idle)) == before


def test_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(ConfigError, match=r"unknown scheduler 'fifo'.*max-min, max-total"):
        create("fifo")
