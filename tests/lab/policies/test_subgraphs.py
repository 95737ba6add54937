"""The dynamic programme against exhaustive search, and decisions in the making."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heimdall.lab.policies.subgraphs import PendingDecision, Sequences, SubgraphPolicy
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.plans import StagePlan


def exhaustive(model, free_ns, now_ns, start=0):
    """When the best of all sequences of subgraphs ends; None where there is none."""
    ops, ends = model.ops, []
    inner = range(start + 1, ops)
    for count in range(len(inner) + 1):
        for cuts in combinations(inner, count):
            bounds = [start, *cuts, ops]
            for processors in product(free_ns, repeat=count + 1):
                at_ns = now_ns
                for one, other, processor in zip(bounds, bounds[1:], processors, strict=False):
                    took_ns = model.on_ns(processor, one, other)
                    if took_ns is None:
                        break
                    at_ns = max(at_ns, free_ns[processor]) + took_ns
                else:
                    ends.append(at_ns)
    return min(ends, default=None)


@st.composite
def networks(draw, costs, most_units, most_processors):
    count, processors = draw(st.integers(1, most_units)), draw(st.integers(1, most_processors))
    op_ns = st.one_of(st.none(), st.integers(0, 50))
    row = st.lists(op_ns, min_size=count, max_size=count)
    names = [f"p{index}" for index in range(processors)]
    cuts = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    model = costs({name: tuple(draw(row)) for name in names}, cuts, draw(st.integers(0, 5)))
    free_ns = {name: draw(st.integers(100, 160)) for name in names}
    for name in names:
        if draw(st.booleans()):
            for elapsed_ns in draw(st.lists(st.integers(0, 100), max_size=4)):
                model.learn_on(name, 0, 1, elapsed_ns)
    return model, free_ns, draw(st.integers(0, count - 1))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_the_programme_finds_what_exhaustive_search_finds(queues, data):
    model, free_ns, start = data.draw(networks(queues.costs, most_units=5, most_processors=4))
    way = Sequences(model).shortest(start, free_ns, 100)
    assert (way and way.finish_ns) == exhaustive(model, free_ns, 100, start)


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_it_does_so_for_larger_networks(queues, data):
    model, free_ns, _ = data.draw(networks(queues.costs, most_units=7, most_processors=4))
    way = Sequences(model).shortest(0, free_ns, 100)
    assert (way and way.finish_ns) == exhaustive(model, free_ns, 100)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_going_its_way_step_by_step_ends_when_it_said(queues, data):
    model, free_ns, _ = data.draw(networks(queues.costs, most_units=6, most_processors=4))
    way = Sequences(model).shortest(0, free_ns, 100)
    assume(way is not None)
    promised_ns, at_ns, op = way.finish_ns, 100, 0
    while op < model.ops:
        way = Sequences(model).shortest(op, free_ns, at_ns)
        assert way.first_ns == model.on_ns(way.processor, op, way.end_op)
        at_ns, op = max(at_ns, free_ns[way.processor]) + way.first_ns, way.end_op
    assert at_ns == promised_ns


def test_figure_12(queues):
    """Job 1: {A, B} on the NPU, then {C}: 10 in all, of an SLO of 80."""
    job_1 = queues.costs({"cpu": (9, 9, 4), "gpu": (7, None, None), "npu": (3, 3, None)})
    way = Sequences(job_1).shortest(0, {"cpu": 0, "gpu": 0, "npu": 0}, 0)
    assert (way.finish_ns, way.processor, way.end_op, way.first_ns) == (10, "npu", 2, 6)
    assert way.used == {"npu", "cpu"}


def test_a_busy_processor_is_waited_for_only_where_that_is_shorter(queues):
    model = queues.costs({"cpu": (30,), "npu": (5,)})
    assert Sequences(model).shortest(0, {"cpu": 0, "npu": 20}, 0).processor == "npu"
    assert Sequences(model).shortest(0, {"cpu": 0, "npu": 26}, 0).processor == "cpu"


def test_merging_saves_the_cost_of_cutting(queues):
    model = queues.costs({"npu": (5, 5)}, cut_ns=(4, 4))
    assert Sequences(model).shortest(0, {"npu": 0}, 0).end_op == 2


def test_what_no_working_processor_supports_has_no_way(queues):
    model = queues.costs({"cpu": (1, None), "npu": (None, 1)})
    assert Sequences(model).shortest(0, {"cpu": 0}, 0) is None
    assert Sequences(model).shortest(0, {"cpu": 0, "npu": 0}, 0).finish_ns == 2


def test_it_follows_what_is_learnt(queues):
    model = queues.costs({"cpu": (30,), "npu": (20,)})
    sequences = Sequences(model)
    assert sequences.left_ns[0] == 20
    for _ in range(40):
        model.learn_on("npu", 0, 1, 200)
    assert sequences.shortest(0, {"cpu": 0, "npu": 0}, 0).processor == "cpu"
    assert sequences.left_ns[0] == 30
    assert sequences.as_profiled(0).finish_ns == 20  # as profiled
    assert sequences.as_profiled(0, ["cpu"]).finish_ns == 30
    assert sequences.as_profiled(0, ["abacus"]) is None


class Idle(SubgraphPolicy):
    name = "idle"

    def select(self, view, now_ns):
        return None


def test_what_is_chosen_counts_for_what_is_chosen_next(queues):
    model = queues.costs({"cpu": (12,), "npu": (5,)})
    jobs = [queues.request(1, model), queues.request(2, model), queues.request(3, model)]
    policy = Idle()
    moment = PendingDecision(queues.view(*jobs), 0)
    ways = []
    for each in jobs:
        way = moment.way(policy.rest(each))
        ways.append((way.processor, way.finish_ns))
        if way.processor in moment.idle:
            moment.run(each, way)
        else:
            moment.reserve(way)
    assert ways == [("npu", 5), ("npu", 10), ("cpu", 12)]
    assert [each.processor for each in moment.chosen] == ["npu", "cpu"]


def test_a_second_lane_is_free_at_once(queues):
    model = queues.costs({"cpu": (12,)})
    policy = Idle()
    moment = PendingDecision(queues.view(idle=("cpu", "cpu"), free_ns={"cpu": 0}), 0)
    for id in (1, 2):
        way = moment.way(policy.rest(queues.request(id, model)))
        assert way.finish_ns == 12
        moment.run(queues.request(id, model), way)
    assert moment.way(policy.rest(queues.request(3, model))).finish_ns == 24


@pytest.mark.parametrize(("deadline_ns", "dropped"), [(5, False), (4, True)])
def test_a_request_that_cannot_be_in_time_even_alone_is_dropped(queues, deadline_ns, dropped):
    model = queues.costs({"cpu": (12,), "npu": (5,)})
    late = queues.request(1, model, deadline_ns)
    assert bool(Idle().hopeless(late, 0)) is dropped


def test_a_model_built_anew_is_looked_at_anew(queues):
    policy = Idle()
    assert policy.rest(queues.request(1, queues.costs({"cpu": (12,)}))).sequences.left_ns[0] == 12
    assert policy.rest(queues.request(1, queues.costs({"cpu": (7,)}))).sequences.left_ns[0] == 7


def test_a_network_without_a_table_of_processors_goes_from_fallback_to_fallback(queues):
    plan = StagePlan((5, 5, 3, 5), (False, False, True, False), 90, 1, ((0, 1), (1, 4)))
    model = StageCosts(plan)
    way = Sequences(model).shortest(0, {"gpu": 0, "cpu": 0}, 0)
    assert (way.processor, way.end_op, way.finish_ns) == ("gpu", 2, 11 + 3 + 6)
    assert Sequences(model).shortest(3, {"gpu": 0, "cpu": 0}, 0).end_op == 4
    assert Sequences(model).shortest(0, {"gpu": 99, "cpu": 0}, 0).processor == "cpu"
    assert Sequences(model).shortest(3, {"cpu": 0}, 0) is None  # the CPU runs it as a whole only
