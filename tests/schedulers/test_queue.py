"""What every registered policy with a queue for all processors owes the coordinator."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from heimdall.schedulers import SCHEDULERS, create
from heimdall.schedulers.queue import QueuePolicy

NAMES = [name for name in sorted(SCHEDULERS) if issubclass(SCHEDULERS[name], QueuePolicy)]


@pytest.fixture(params=NAMES)
def scheduler(request):
    return create(request.param)


def test_it_is_created_by_its_name(scheduler):
    assert type(scheduler) is SCHEDULERS[scheduler.name]


def test_it_gives_each_idle_lane_a_range_that_it_supports_and_says_why(scheduler, queues):
    costs = queues.costs({"cpu": (9, 9, 9), "npu": (2, None, 2)})
    jobs = [queues.request(id, costs, next_op=id % 3) for id in range(6)]
    choice = scheduler.select(queues.view(*jobs, idle=("cpu", "cpu", "npu")), 0)
    assert choice.reason
    lanes = [each.processor for each in choice.assignments]
    assert 0 < len(lanes) == len({each.job for each in choice.assignments})
    assert lanes.count("npu") <= 1
    for each in choice.assignments:
        assert costs.on_ns(each.processor, jobs[each.job].next_op, each.end_op) is not None


def test_it_leaves_what_no_idle_processor_supports(scheduler, queues):
    costs = queues.costs({"cpu": (9,), "npu": (None,)})
    busy = queues.view(queues.request(1, costs), idle=("npu",), free_ns={"cpu": 50, "npu": 0})
    choice = scheduler.select(busy, 0)
    assert choice is None or not choice.assignments


def test_it_mutates_nothing_and_repeats_itself(scheduler, queues):
    costs = queues.costs({"cpu": (9, 9), "npu": (2, None)})
    jobs = [queues.request(id, costs, dnn="net") for id in range(3)]
    view = queues.view(*jobs)

    def seen():
        fields = [field.name for field in dataclasses.fields(view)]
        states = [[getattr(job, each) for each in ("next_op", "deadline_ns")] for job in jobs]
        return copy.copy([getattr(view, each) for each in fields]), states

    before = seen()
    first = scheduler.select(view, 0)
    assert scheduler.select(view, 0) == first
    assert seen() == before


def test_it_places_jobs_within_the_queue(scheduler, queues):
    costs = queues.costs({"cpu": (9, 9), "npu": (2, None)})
    queue = [queues.request(id, costs) for id in range(3)]
    for next_op in (0, 1):
        job = queues.request(7, costs, next_op=next_op)
        assert 0 <= scheduler.place(job, queue, 0) <= len(queue)
