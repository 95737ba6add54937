"""Pantheon's policy: the paper's steps on literal times, and what it owes any queue."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heimdall.lab.policies.edf_exits import EdfExits
from heimdall.schedulers import create
from heimdall.schedulers.base import JobView
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.plans import Exit, StagePlan, Utility
from tests.views import still_view

HEAD = 1


def network(blocks, accuracies):
    """Blocks of one op, and an exit with a head of one op behind each but the last."""
    exits: list[Exit] = []
    op_ns: list[int] = []
    backbone: list[tuple[int, int]] = []
    for index, ns in enumerate(blocks[:-1]):
        op = len(op_ns)
        op_ns += [ns, HEAD]
        backbone.append((op, op + 1))
        exits.append(Exit(f"exit{index + 1}", (*backbone, (op + 1, op + 2)), accuracies[index]))
    op = len(op_ns)
    op_ns.append(blocks[-1])
    exits.append(Exit("full", (*backbone, (op, op + 1)), accuracies[-1]))
    on = (("gpu", tuple(op_ns)),)
    chunks = tuple((op, op + 1) for op in range(len(op_ns)))
    return StageCosts(
        StagePlan(
            tuple(op_ns), (False,) * len(op_ns), 0, 0, chunks, on=on, exits=tuple(exits)
        )
    )  # fmt: skip


def job(id, costs, deadline_ns, *, priority="normal", passed_op=0, variant="", executed_ns=0):
    variants = costs.variants
    variant = variant or costs.whole
    return JobView(
        id=id,
        dnn=f"net{id}",
        priority=priority,
        utility=Utility(),
        constraint_ns=deadline_ns,
        costs=(costs,),
        arrival_ns=0,
        deadline_ns=deadline_ns,
        passed_op=passed_op,
        next_op=variants[variant].next_op[passed_op] if variants else passed_op,
        variant=variant,
        variants=tuple(name for name in variants if variants[name].next_op[passed_op] < costs.ops),
        executed_ns=executed_ns,
        request=id,
    )


def queued(policy, *jobs):
    """The queue after these have come."""
    queue: list[JobView] = []
    for each in jobs:
        queue.insert(policy.place(each, queue, 0), each)
    return queue


def select(policy, queue, now_ns=0):
    return policy.select(still_view(queue, ("gpu",), {"gpu": now_ns}), now_ns)


def chosen(policy, *jobs, now_ns=0):
    """By job, the variants that it is to end as."""
    queue = queued(policy, *jobs)
    select(policy, queue, now_ns)
    return {each.id: policy.variant(each) or each.variant for each in queue}


@pytest.fixture
def nets():
    return SimpleNamespace(
        cheap=network((10, 10, 10), (0.88, 0.89, 0.9)),  # its exits cost 1 and 2 points
        dear=network((10, 10, 10), (0.5, 0.7, 0.9)),
    )


def test_the_earliest_deadline_is_first_and_best_effort_last(nets):
    policy = EdfExits()
    jobs = [job(1, nets.cheap, 500), job(2, nets.cheap, 900, priority="low"),
            job(3, nets.cheap, 100), job(4, nets.cheap, 300)]  # fmt: skip
    queue = queued(policy, *jobs)
    assert [each.id for each in queue] == [3, 4, 1, 2]
    (first,) = select(policy, queue).assignments
    assert (first.job, first.end_op) == (3, 1)  # a chunk


def test_where_all_are_in_time_all_run_whole(nets):
    found = chosen(EdfExits(), job(1, nets.cheap, 30), job(2, nets.dear, 60))
    assert set(found.values()) == {"full"}


def test_what_chunks_take_on_their_way_counts(nets):
    """Three chunks of 10, and four ways: those of the chunks and that of the answer."""
    for handoff_ns, variant in ((2.5, "full"), (3.0, "exit2")):
        policy, only = EdfExits(), job(1, nets.cheap, 40)
        queue = queued(policy, only)
        gpu = ("gpu",)
        policy.select(still_view(queue, gpu, {"gpu": 0}, {"gpu": handoff_ns}), 0)
        assert (policy.variant(only) or "full") == variant


def test_the_one_before_gives_way_where_that_costs_less_accuracy(nets):
    """Fig. 4b: whoever has the least accuracy drop of those up to the one that is late."""
    found = chosen(EdfExits(), job(1, nets.cheap, 30), job(2, nets.dear, 55))
    assert found == {1: "exit2", 2: "full"}
    found = chosen(EdfExits(), job(1, nets.cheap, 30), job(2, nets.dear, 45))
    assert found == {1: "exit1", 2: "full"}
    found = chosen(EdfExits(), job(1, nets.cheap, 30), job(2, nets.dear, 35))
    assert found == {1: "exit1", 2: "exit2"}


def test_a_drop_is_measured_against_the_whole_network():
    """From exit2 to exit1 is a small step, but it ends 11 points below the whole network."""
    steep = network((10, 10, 10), (0.79, 0.80, 0.9))
    other = network((10, 10, 10), (0.70, 0.795, 0.9))
    found = chosen(EdfExits(), job(1, steep, 44), job(2, other, 45))
    assert found == {1: "exit2", 2: "exit2"}


def test_one_that_cannot_be_in_time_goes_behind_those_that_can(nets):
    policy = EdfExits()
    jobs = [job(1, nets.cheap, 5), job(2, nets.cheap, 30), job(3, nets.cheap, 99, priority="low")]
    queue = queued(policy, *jobs)
    (first,) = select(policy, queue).assignments
    assert first.job == 2
    assert policy.variant(queue[1]) == ""  # and it does not have to make room
    assert policy.variant(queue[0]) == "exit1"


def test_variants_are_largest_again_when_somebody_comes_and_there_is_time(nets):
    policy = EdfExits()
    late = job(1, nets.cheap, 60, variant="exit1")
    assert chosen(policy, late) == {1: "full"}


def test_an_exit_that_is_passed_is_not_chosen(nets):
    begun = job(1, nets.cheap, 25, passed_op=3, executed_ns=20)  # behind the second block
    assert begun.variants == ("exit2", "full")
    assert chosen(EdfExits(), begun, job(2, nets.dear, 30)) == {1: "exit2", 2: "exit2"}


def test_it_refreshes_when_what_ran_took_longer_than_expected(nets):
    policy = EdfExits()
    queue = queued(policy, job(1, nets.cheap, 31))
    select(policy, queue, now_ns=0)
    assert policy.variant(queue[0]) == ""
    select(policy, queue, now_ns=1)
    assert policy.variant(queue[0]) == ""
    select(policy, queue, now_ns=2)  # no request has come
    assert policy.variant(queue[0]) == "exit2"


def test_without_switching_a_job_that_has_begun_keeps_its_variant(nets):
    begun = job(1, nets.cheap, 45, passed_op=1, executed_ns=10)
    waiting = job(2, nets.dear, 46)
    for name, variant in (("edf-exits", "exit2"), ("edf-exits-noswitch", "full")):
        assert chosen(create(name), begun, waiting)[1] == variant


def test_without_exits_all_run_whole(nets):
    policy = create("edf-exits-noexits")
    assert set(chosen(policy, job(1, nets.cheap, 30), job(2, nets.cheap, 35)).values()) == {"full"}


@pytest.mark.parametrize("name", ["edf-exits-noswitch-nopreempt", "edf-exits-noexits-nopreempt"])
def test_without_preemption_who_has_begun_goes_on_to_the_end(nets, name):
    policy = create(name)
    begun = job(1, nets.cheap, 900, passed_op=1, executed_ns=10)
    (assignment,) = select(policy, queued(policy, begun, job(2, nets.cheap, 100))).assignments
    assert (assignment.job, assignment.end_op) == (1, nets.cheap.ops)


@pytest.mark.parametrize("name", ["edf-exits-noswitch-nopreempt", "rms", "rt-mdl"])
def test_best_effort_gives_way_where_nothing_else_does(nets, name):
    """It has a queue of the GPU's that yields, whoever decides about the others (section 2)."""
    policy = create(name)
    idle = job(1, nets.cheap, 900, priority="low", passed_op=1, executed_ns=10)
    alone = select(policy, queued(policy, idle)).assignments[0]
    assert (alone.job, alone.end_op) == (1, nets.cheap.block_end(idle.next_op))
    (first,) = select(policy, queued(policy, idle, job(2, nets.cheap, 100))).assignments
    assert first.job == 2


def test_a_deadline_that_has_passed_is_hopeless_but_not_for_best_effort(nets):
    policy = EdfExits()
    assert "deadline" in policy.hopeless(job(1, nets.cheap, 30), 30)
    assert not policy.hopeless(job(1, nets.cheap, 30), 29)
    assert not policy.hopeless(job(1, nets.cheap, 30, priority="low"), 99)


TIMES = st.lists(st.integers(1, 40), min_size=2, max_size=4)


@given(st.lists(st.tuples(TIMES, st.integers(1, 150), st.integers(0, 30)), min_size=1, max_size=4))
def test_where_the_smallest_variants_are_in_time_the_chosen_ones_are_too(specs):
    """Steps 1-3 end with a schedule where there is one, in the order of deadlines."""
    jobs = []
    for id, (blocks, deadline_ns, step) in enumerate(specs):
        accuracies = [0.9 - step / 1000 * (len(blocks) - 1 - i) for i in range(len(blocks))]
        jobs.append(job(id, network(blocks, accuracies), deadline_ns))
    jobs.sort(key=lambda each: each.deadline_ns)
    variants = [each.costs[0] for each in jobs]
    smallest = [min(costs.left_on("gpu", 0, name) for name in costs.variants) for costs in variants]
    feasible = all(
        done <= each.deadline_ns
        for done, each in zip(itertools.accumulate(smallest), jobs, strict=True)
    )
    found = chosen(EdfExits(), *jobs)
    assume(feasible and all(w == sorted(w) for w in _left(jobs)))
    done_ns = 0
    for each in jobs:
        done_ns += each.costs[0].left_on("gpu", 0, found[each.id])
        assert done_ns <= each.deadline_ns


def _left(jobs):
    """Of each job what its variants take, from the smallest on."""
    return [[j.costs[0].left_on("gpu", 0, name) for name in j.variants] for j in jobs]
