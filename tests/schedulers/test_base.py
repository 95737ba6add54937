"""What every registered scheduler owes the coordinator."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from heimdall.errors import ConfigError
from heimdall.schedulers import SCHEDULERS, create
from heimdall.schedulers.base import TRIGGERS
from heimdall.schedulers.queue import QueuePolicy


# Those with a queue for all processors: test_queue.py.
@pytest.fixture(
    params=[name for name in sorted(SCHEDULERS) if not issubclass(SCHEDULERS[name], QueuePolicy)]
)
def scheduler(request):
    return create(request.param)


def test_it_is_created_by_its_name(scheduler):
    assert type(scheduler) is SCHEDULERS[scheduler.name]
    assert scheduler.triggers <= TRIGGERS


def test_it_chooses_a_job_of_the_view_and_says_why(scheduler, moment):
    jobs = [moment.job(name, age_ms=age) for name, age in (("a", 10), ("b", 700), ("c", 990))]
    choice = scheduler.select(moment.view(*jobs), moment.now_ns)
    (assignment,) = choice.assignments
    assert assignment.job in {job.id for job in jobs}
    assert choice.reason


def test_it_mutates_nothing_and_repeats_itself(scheduler, moment):
    jobs = [moment.job(name, age_ms=age) for name, age in (("a", 10), ("b", 300))]
    view = moment.view(*jobs)
    before = copy.deepcopy([dataclasses.asdict(job) for job in jobs])
    first = scheduler.select(view, moment.now_ns)
    assert scheduler.select(view, moment.now_ns) == first
    assert [dataclasses.asdict(job) for job in jobs] == before


def test_a_single_job_always_runs(scheduler, moment):
    job = moment.job("only", age_ms=1)
    assert scheduler.select(moment.view(job), moment.now_ns).assignments[0].job == job.id


def test_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(ConfigError, match=r"unknown scheduler 'fifo'.*max-min, max-total"):
        create("fifo")
