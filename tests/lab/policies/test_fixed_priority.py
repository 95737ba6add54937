from __future__ import annotations

from typing import Any

import pytest

from heimdall.lab.policies.fixed_priority import RtMdl
from heimdall.schedulers import create
from heimdall.vocabulary.plans import StagePlan
from tests.exits import make_exits


@pytest.mark.parametrize(("name", "first"), [("rms", 1), ("dms", 2)])
def test_who_is_first(queues, name, first):
    policy: Any = create(name)
    queue: list = []
    short, long = queues.costs({"gpu": (2, 2)}), queues.costs({"gpu": (9, 9)})
    for job in (queues.request(1, short, 900), queues.request(2, long, 500)):
        queue.insert(policy.place(job, queue, 0), job)
    (assignment,) = policy.select(queues.view(*queue, idle=("gpu",)), 0).assignments
    assert (assignment.job, assignment.end_op) == (first, 2)


@pytest.mark.parametrize("name", ["rms", "dms", "rt-mdl"])
def test_who_has_begun_is_not_interrupted(queues, name):
    policy, costs = create(name), queues.costs({"gpu": (2, 2)})
    begun, urgent = queues.request(1, costs, 900, next_op=1), queues.request(2, costs, 100)
    begun = begun._replace(executed_ns=2)
    (assignment,) = policy.select(queues.view(urgent, begun, idle=("gpu",)), 0).assignments
    assert assignment.job == 1


def test_requests_of_one_rank_are_first_come_first_served(queues):
    policy: Any = create("dms")
    costs = queues.costs({"gpu": (2, 2)})
    queue: list = []
    for id in range(3):
        job = queues.request(id, costs, 500)
        queue.insert(policy.place(job, queue, 0), job)
    assert [job.id for job in queue] == [0, 1, 2]


def test_rt_mdl_goes_by_the_ranks_and_variants_that_it_was_given(queues):
    exits = make_exits([(1, 1)], 2)
    costs = type(queues.costs({"gpu": (1,)}))(
        StagePlan((5,) * 4, (False,) * 4, 0, 0, (), on=(("gpu", (5,) * 4),), exits=exits)
    )
    policy = RtMdl({"a": 7, "b": 3}, {"b": "exit1"})
    queue: list = []
    for id, dnn in enumerate("ab"):
        job = queues.request(id, costs, dnn=dnn)._replace(variants=("exit1", "full"))
        queue.insert(policy.place(job, queue, 0), job)
    (assignment,) = policy.select(queues.view(*queue, idle=("gpu",)), 0).assignments
    assert (assignment.job, assignment.variant) == (1, "exit1")


def test_what_rt_mdl_was_given_is_part_of_what_a_replay_needs():
    assert RtMdl({"a": 7}, {"a": "exit1"}).config() == {
        "ranks": {"a": 7},
        "variants": {"a": "exit1"},
    }
    assert create("rt-mdl").config() == {}
