"""The engine that computes nothing."""

import time

import numpy as np
import onnx
import pytest

from heimdall.engine.null import NullEngine
from heimdall.graph.graph import graph_from_model

GRAPH = graph_from_model(
    onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]>'
        "net (float[1,2,3,4] x) => (float[1,2,3,4] y) {a = Relu(x) b = Tanh(a) y = Neg(b)}"
    )
)
X = {"x": np.ones((1, 2, 3, 4), np.float32)}


def test_elapsed_time_is_the_given_cost():
    network = NullEngine(op_ns=lambda op: 7 if op.kind == "Tanh" else 1, chunk_cost_ns=100).load(
        GRAPH
    )
    state = network.new_state()
    network.write(state, X)
    assert network.run(state, 0, 2) == 108
    assert network.run(state, 2, 3) == 101
    assert network.op_times(state) == [1, 7, 1]


def test_outputs_are_zeros_and_only_after_the_last_op():
    network = NullEngine().load(GRAPH)
    state = network.new_state()
    network.write(state, X)
    network.run(state, 0, 2)
    with pytest.raises(ValueError, match="before reading"):
        network.read(state)
    network.run(state, 2, 3)
    assert not network.read(state)["y"].any()


def test_ops_out_of_order_or_before_any_input_are_refused():
    network = NullEngine().load(GRAPH)
    state = network.new_state()
    with pytest.raises(ValueError, match="out of order"):
        network.run(state, 0, 1)
    network.write(state, X)
    with pytest.raises(ValueError, match="out of order"):
        network.run(state, 1, 2)


def test_sleeping_engine_takes_at_least_its_cost():
    network = NullEngine(op_ns=2_000_000, sleep=True).load(GRAPH)
    state = network.new_state()
    network.write(state, X)
    began_ns = time.perf_counter_ns()
    assert network.run(state, 0, 3) == 6_000_000
    assert time.perf_counter_ns() - began_ns >= 5_900_000
