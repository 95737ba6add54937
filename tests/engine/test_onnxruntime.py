"""onnxruntime as an engine: its own optimised graph, cut anywhere."""

import itertools
import weakref

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine import onnxruntime as module
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.errors import ConfigError
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.system import paths

MODELS = paths.ASSETS / "models"


@pytest.fixture(scope="module")
def selfie():
    return load_graph(MODELS / "seg_selfie_256.onnx")


def infer(network, inputs, cuts=()):
    state = network.new_state()
    network.write(state, inputs)
    edges = [0, *cuts, len(network.ops)]
    for start, end in itertools.pairwise(edges):
        network.run(state, start, end)
    return network.read(state)


@pytest.mark.parametrize(
    "name", ["detect_nanodet_416", "hand_landmark_lite_224", "pose_movenet_lightning_192"]
)
def test_cut_network_is_bit_identical_to_the_whole(name):
    graph = load_graph(MODELS / f"{name}.onnx")
    network = OnnxRuntimeEngine().load(graph)
    inputs = sample_inputs(graph)
    whole = infer(network, inputs)
    count = len(network.ops)
    for cuts in ([count // 2], [1, 2, count // 3, count - 1]):
        for output, value in infer(network, inputs, cuts).items():
            np.testing.assert_array_equal(value, whole[output])


def test_ops_are_those_of_the_fused_graph(selfie):
    network = OnnxRuntimeEngine().load(selfie)
    nodes = {node.name: node for node in selfie.nodes}
    convolutions = [op for op in network.ops if op.kind == "Conv"]
    kinds = [{nodes[name].op_type for name in op.nodes} for op in convolutions]
    assert any({"Conv", "Relu"} <= found for found in kinds)
    assert {node.name for node in selfie.nodes} == {n for op in network.ops for n in op.nodes}


def test_sessions_of_ranges_are_kept_up_to_a_size(selfie, monkeypatch):
    alive: weakref.WeakSet[ort.InferenceSession] = weakref.WeakSet()

    class Session(ort.InferenceSession):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            alive.add(self)

    monkeypatch.setattr(ort, "InferenceSession", Session)
    network = OnnxRuntimeEngine().load(selfie)
    inputs = sample_inputs(selfie)
    others = len(alive)
    every_op = range(1, len(network.ops))
    infer(network, inputs, every_op)
    kept = set(map(id, alive))
    assert len(alive) == others + len(network.ops)
    infer(network, inputs, every_op)
    assert set(map(id, alive)) == kept
    monkeypatch.setattr(module, "CACHED_BYTES", 50_000)
    whole = infer(network, inputs)
    for output, value in infer(network, inputs, [5, 50]).items():
        np.testing.assert_array_equal(value, whole[output])
    assert others < len(alive) < others + len(network.ops) / 2
    infer(network, inputs, [5, 50])
    assert set(map(id, alive)) != kept


def test_several_threads_give_the_same_answer(selfie):
    inputs = sample_inputs(selfie)
    one = infer(OnnxRuntimeEngine().load(selfie), inputs)
    two = infer(OnnxRuntimeEngine(threads=2).load(selfie), inputs)
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, atol=1e-5)


def test_no_thread_at_all_is_refused():
    with pytest.raises(ConfigError, match="at least one thread"):
        OnnxRuntimeEngine(threads=0)


def test_an_output_that_no_op_computes_can_be_read():
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("ReduceSum", ["w"], ["z"], keepdims=0),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    for outputs in (["z"], ["y", "z"]):
        proto = helper.make_graph(
            nodes,
            "net",
            [value("x", TensorProto.FLOAT, [4])],
            [value(name, TensorProto.FLOAT, ["n"]) for name in outputs],
            [numpy_helper.from_array(np.ones(3, np.float32), "w")],
        )
        imports = [helper.make_opsetid("", 13)]
        graph = graph_from_model(helper.make_model(proto, opset_imports=imports, ir_version=8))
        network = OnnxRuntimeEngine().load(graph)
        found = network.infer(network.new_state(), {"x": np.ones(4, np.float32)})
        assert found["z"] == 3
