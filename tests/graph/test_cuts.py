"""A graph between two of its places."""

import pytest
from onnx import helper

from heimdall.graph.cuts import Held, alive, between, critical, held
from tests.networks import small_graph


@pytest.fixture(scope="module")
def graph():
    """x -> a -> b, and y = b + a; z = -a is an output as well."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Sigmoid", ["a"], ["b"], "second"),
        helper.make_node("Neg", ["a"], ["z"], "third"),
        helper.make_node("Add", ["b", "a"], ["y"], "last"),
    ]
    return small_graph(nodes, {"x": [1, 3]}, {"y": [1, 3], "z": [1, 3]})


def test_what_is_read_later_is_alive(graph):
    assert [alive(graph, index) for index in range(5)] == [
        (),
        ("a",),
        ("a", "b"),
        ("a", "b", "z"),
        ("z", "y"),
    ]


@pytest.mark.parametrize(
    ("given", "wanted", "nodes", "read"),
    [
        ((), ("y", "z"), ["first", "second", "third", "last"], ["x"]),
        (("a", "b"), ("y", "z"), ["third", "last"], ["a", "b"]),
        (("a",), ("a", "b"), ["second"], ["a"]),
        (("a", "b", "z"), ("z", "a"), [], []),  # nothing is left to be made
    ],
)
def test_the_nodes_between_two_cuts(graph, given, wanted, nodes, read):
    found, used = between(graph, given, wanted)
    assert ([node.name for node in found], used) == (nodes, read)


def test_what_a_job_keeps_at_each_op_is_what_is_alive_there(graph):
    states = held(graph, [[node.name] for node in graph.nodes])
    for index, state in enumerate(states):
        names = alive(graph, index)
        assert state == Held(len(names), sum(graph.tensors[name].bytes for name in names))
    assert critical(states) == (1,)


def test_an_op_of_several_nodes_makes_only_what_others_read(graph):
    states = held(graph, [["first", "second"], ["third"], ["last"]])
    assert [state.tensors for state in states] == [0, 2, 3]


def test_within_a_node_of_several_ops_nothing_is_critical(graph):
    states = held(graph, [["first"], ["first"], ["second", "third", "last"]])
    assert [state.tensors for state in states] == [0, 1, 1]
    assert states[1].bytes == 0


def test_a_node_that_no_op_runs_is_another_view_of_what_it_reads(graph):
    """As where "last" writes into the memory of the others."""
    states = held(graph, [["first"], ["second"], ["third"]])
    assert [state.tensors for state in states] == [0, 1, 2]
    assert states[2].bytes == 2 * graph.tensors["a"].bytes  # a for "third", and y
