"""What may run together, and what is refused before anything runs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from heimdall.engine import GroupMember
from heimdall.engine.null import NullEngine
from heimdall.engine.together import deal, whole_jobs
from heimdall.graph.graph import graph_from_model


@pytest.fixture
def engine():
    return NullEngine(op_ns=lambda op: 30 if op.kind == "Tanh" else 10, lanes=2)


@pytest.fixture(scope="module")
def graph():
    """0 forks into (1, 2) and (3), 4 joins them, 5 follows."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "fork"),
        helper.make_node("Tanh", ["a"], ["b"], "long"),
        helper.make_node("Relu", ["b"], ["c"], "longer"),
        helper.make_node("Sigmoid", ["a"], ["d"], "short"),
        helper.make_node("Add", ["c", "d"], ["e"], "join"),
        helper.make_node("Neg", ["e"], ["y"], "last"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    model = helper.make_model(
        helper.make_graph(nodes, "forked", values[:1], values[1:]),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,  # the newest of onnx may be newer than what onnxruntime reads
    )
    return graph_from_model(model, "forked")


@pytest.fixture
def job(engine, graph):
    """``job(ranges, ...)``: parts of one job that has just begun."""

    def begin(*ranges, where=engine, force_fallback=()):
        network = where.load(graph, force_fallback=force_fallback)
        state = network.new_state()
        network.write(state, {"x": np.zeros((1, 4), np.float32)})
        return [GroupMember(network, state, each) for each in ranges]

    return begin


def test_a_stage_takes_as_long_as_its_longest_lane(engine, job):
    (first,), (other,) = job(((0, 6),)), job(((0, 3),))
    assert engine.run_together([[first, other]]) == 80
    assert (first.state.position, other.state.position) == (6, 3)
    fork, long, short, rest = job(((0, 1),), ((1, 3),), ((3, 4),), ((4, 6),))
    assert engine.run_together([[fork], [long, short], [rest]]) == 10 + 40 + 20
    assert engine.run_together([]) == 0


def test_what_all_parts_have_of_a_job_is_one_range(engine, job):
    fork, long, short = job(((0, 1),), ((1, 3),), ((3, 4),))
    (other,) = job(((0, 2), (2, 5)))
    jobs = whole_jobs(engine.runs, [[fork, other], [short, long]])
    assert [each.ranges for each in jobs] == [((0, 4),), ((0, 5),)]


@pytest.mark.parametrize(
    ("stages", "complaint"),
    [
        ([[0, 1], [2, 3]], "op 1 of forked needs op 0"),  # in one stage
        ([[0], [3], [1, 2]], "op 4 of forked needs op 2"),  # in a later one
        ([[1, 2], [3]], "op 1 is next|op 0 is next"),  # the first op is left out
        ([[0], [1], [3]], "op 3 of forked is missing"),
        ([[0], [1, 1], [2, 3]], "op 1 of forked is in two parts"),
    ],
)
def test_parts_that_may_not_run_so_are_refused(engine, job, stages, complaint):
    parts = job(((0, 1),), ((1, 3),), ((3, 4),), ((4, 6),))
    with pytest.raises(ValueError, match=complaint):
        engine.run_together([[parts[index] for index in stage] for stage in stages])
    assert parts[0].state.position == 0


@pytest.mark.parametrize(
    ("ranges", "complaint"),
    [
        ((), "no ops"),
        (((0, 0),), "no ops"),
        (((2, 4), (0, 2)), "not in order"),
        (((0, 3), (2, 4)), "not in order"),
        (((0, 9),), "outside the 6 ops"),
    ],
)
def test_ranges_that_are_none_are_refused(engine, job, ranges, complaint):
    with pytest.raises(ValueError, match=complaint):
        engine.run_together([job(ranges)])


def test_a_job_without_input_has_no_next_op(engine, graph):
    network = engine.load(graph)
    with pytest.raises(ValueError, match="out of order"):
        engine.run_together([[GroupMember(network, network.new_state(), ((0, 1),))]])


def test_fallback_ops_are_refused(engine, job):
    with pytest.raises(ValueError, match="fallback"):
        engine.run_together([job(((0, 6),), force_fallback=["Sigmoid"])])


def test_networks_of_another_engine_are_refused(engine, job):
    with pytest.raises(ValueError, match="forked is loaded by another engine"):
        engine.run_together([job(((0, 6),), where=NullEngine())])


def test_the_longest_part_goes_first_to_the_lane_that_is_done_first():
    assert deal([1, 5, 2, 2], 2) == [[1], [2, 3, 0]]
    assert deal([1, 2], 4) == [[1], [0]]
    assert deal([3, 1], 1) == [[0, 1]]
    assert deal([], 2) == []
