"""Whole networks at several sizes, and the classics of the onnx wheel, on both kernel families,
with a chunk boundary at every op."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs

CLASSICS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TOLERANCE = 1e-3
SIZES = [
    ("centerface_dynamic", [1, 3, 96, 128]),
    ("multistyle26_dynamic", {"image": [1, 3, 61, 83]}),
    ("multistyle26_dynamic", {"image": [1, 3, 40, 36]}),
]


@pytest.fixture
def agrees(processor, shared):
    def check(graph):
        inputs = sample_inputs(graph)
        network = processor.load(graph)
        assert not any(op.fallback for op in network.ops)
        state = network.new_state()
        whole = shared.run(network, state, inputs)
        assert shared.relative_error(whole, shared.reference(graph, inputs)) <= TOLERANCE
        cut = shared.run(network, state, inputs, range(len(network.ops)))
        assert shared.same(cut, whole)
        network.close()

    return check


@pytest.mark.parametrize(("name", "shape"), SIZES)
def test_networks_with_free_dimensions_at_several_sizes(agrees, assets, name, shape):
    agrees(load_graph(assets / "models" / f"{name}.onnx", shape))


def test_results_do_not_depend_on_which_thread_comes_last(engine, shared):
    """Windows of 4 pixels do not divide squeezenet's pictures: those at the edges overlap."""
    graph = _with_weights(CLASSICS / "light_squeezenet.onnx")
    inputs = sample_inputs(graph)
    network = engine.load(graph)
    state = network.new_state()
    first = shared.run(network, state, inputs)
    assert all(shared.same(shared.run(network, state, inputs), first) for _ in range(20))


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_classics(agrees, name):
    agrees(_with_weights(CLASSICS / f"light_{name}.onnx"))


def _with_weights(path):
    """A light model has constant weights, and its answer is the same for every class: it gets
    random ones here, and its logits as an output."""
    model = load_graph(path).model
    random = np.random.default_rng(0)
    for item in model.graph.initializer:
        array = numpy_helper.to_array(item)
        if array.dtype == np.float32 and array.ndim >= 2:
            scale = np.sqrt(2 / array[0].size)
            drawn = (random.standard_normal(array.shape) * scale).astype(np.float32)
            item.CopyFrom(numpy_helper.from_array(drawn, item.name))
    (softmax,) = [node for node in model.graph.node if node.op_type == "Softmax"]
    logits = helper.make_tensor_value_info(softmax.input[0], TensorProto.FLOAT, None)
    known = {value.name: value for value in model.graph.value_info}
    model.graph.output.append(known.get(softmax.input[0], logits))
    return graph_from_model(model, path.stem)
