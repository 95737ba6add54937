"""A network on the CPU, in the segments between given cuts."""

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from heimdall.engine import open_engine, segments
from heimdall.errors import ModelError
from heimdall.graph.cuts import alive
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.lab.standins.builder import INPUT, Builder

X = {"x": np.array([[-1.0, 0.5, 2.0]], np.float32)}


@pytest.fixture
def network():
    """y = sigmoid(relu(x)) + relu(x), cut behind each of its nodes."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Sigmoid", ["a"], ["b"], "second"),
        helper.make_node("Add", ["b", "a"], ["y"], "last"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy"]
    made = helper.make_graph(nodes, "skip", values[:1], values[1:])
    graph = graph_from_model(
        helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )
    return open_engine("onnxruntime").load_segments(graph, [["a"], ["a", "b"]])


def wanted():
    relu = np.maximum(X["x"], 0)
    return 1 / (1 + np.exp(-relu)) + relu


@pytest.mark.parametrize("ends", [[3], [1, 3], [2, 3], [1, 2, 3]])
def test_any_ranges_of_segments_make_the_same(network, ends):
    state = network.new_state()
    network.write(state, X)
    start = 0
    for end in ends:
        assert network.run(state, start, end) > 0
        start = end
    np.testing.assert_allclose(network.read(state)["y"], wanted(), rtol=1e-6)


def test_it_hands_over_before_every_segment(network):
    assert network.handovers == {1: ("a",), 2: ("a", "b")}
    state = network.new_state()
    network.write(state, X)
    network.run(state, 0, 2)
    tensors = network.hand_over(state)
    np.testing.assert_array_equal(tensors["a"], [[0, 0.5, 2]])
    other = network.new_state()
    network.take_over(other, 2, X, tensors)
    network.run(other, 2, 3)
    np.testing.assert_allclose(network.read(other)["y"], wanted(), rtol=1e-6)


def test_its_ops_are_its_segments(network):
    assert [op.nodes for op in network.ops] == [("first",), ("second",), ("last",)]
    assert all(op.bytes > 0 for op in network.ops)


def test_ranges_out_of_order_and_wrong_inputs_are_refused(network):
    state = network.new_state()
    with pytest.raises(ValueError, match="out of order"):
        network.run(state, 0, 1)  # before any input
    with pytest.raises(ModelError, match="float32"):
        network.write(state, {"x": X["x"].astype(np.float64)})
    network.write(state, X)
    with pytest.raises(ValueError, match="no handover"):
        network.hand_over(state)


def test_nothing_is_made_ready_while_it_runs(network, monkeypatch):
    """To make a session holds the interpreter for as long as several frames last."""
    monkeypatch.setattr(segments, "FallbackOps", None)
    for ends in ([3], [1, 3], [2, 3], [1, 2, 3]):
        state = network.new_state()
        network.write(state, X)
        for start, end in pairwise([0, *ends]):
            network.run(state, start, end)
        np.testing.assert_allclose(network.read(state)["y"], wanted(), rtol=1e-6)


def test_a_transformer_runs_in_segments(tmp_path):
    """Parts of a graph that onnxruntime has optimised: it must not fail at names it gave itself."""
    net = Builder((1, 16, 64))
    x = net.normed(INPUT)
    for _ in range(2):
        x = net.normed(net.plus(x, net.attention(x, 4)))
        x = net.normed(net.plus(x, net.linear(net.linear(x, 128, "Gelu"), 64)))
    net.outputs.append(x)
    path = tmp_path / "transformer.onnx"
    onnx.save(net.model(), path)
    graph, engine = load_graph(path), open_engine("onnxruntime")
    inputs = sample_inputs(graph)
    whole = engine.load_segments(graph, [])
    for step in (3, 5):
        cuts = [alive(graph, index) for index in range(step, len(graph.nodes), step)]
        parts = engine.load_segments(graph, cuts)
        made = []
        for network, size in ((whole, 1), (parts, 1)):
            state = network.new_state()
            network.write(state, inputs)
            for start in range(0, len(network.ops), size):
                network.run(state, start, start + size)
            made.append(network.read(state))
        for name, array in made[0].items():
            np.testing.assert_allclose(made[1][name], array, rtol=1e-4, atol=1e-5)
