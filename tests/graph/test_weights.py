"""Weights apart from their model, and back."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.graph import weights


def model_of(**constants):
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    made = [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "net", [value], [value], made)
    return helper.make_model(graph)


CONSTANTS = {
    "large": np.arange(600, dtype=np.float32).reshape(20, 30),
    "small": np.ones(3, np.float32),
    "whole": np.arange(600),
    "none": np.zeros((0, 600), np.float32),
    "last": np.full((5, 1, 100), 2, np.float32),
}


def test_large_weights_are_taken_out_and_found_again():
    model, bare = model_of(**CONSTANTS), model_of(**CONSTANTS)
    taken = weights.detach(bare)
    assert bare.ByteSize() < model.ByteSize() - 4 * (600 + 500)
    stored = np.concatenate([array.reshape(-1) for array in taken.values()])
    for found in (taken, weights.arrays(bare, stored)):
        assert list(found) == ["large", "last"]
        for name, array in found.items():
            np.testing.assert_array_equal(array, CONSTANTS[name])
            assert not array.flags.writeable
        assert weights.attach(bare, found) == model


def test_a_model_with_all_its_weights_stays_as_it_is():
    model = model_of(**CONSTANTS)
    listed = TensorProto(
        name="listed", data_type=onnx.TensorProto.FLOAT, dims=[300], float_data=[1.0] * 300
    )
    model.graph.initializer.append(listed)
    assert weights.attach(model, {}) == model
