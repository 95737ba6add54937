"""Opsets of today's exporters, read as the lowest that says the same or by ops' bodies."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from heimdall.engine import open_engine
from heimdall.graph import opsets
from heimdall.graph.graph import graph_from_model
from heimdall.graph.onnx_file import OPSETS
from tests.graph.models import model, node

NEWEST = onnx.defs.onnx_opset_version()
newer = pytest.mark.skipif(NEWEST < 28, reason="this onnx does not know the opset")


def computed(graph, **inputs):
    network = open_engine("onnxruntime").load(graph)
    return network.infer(network.new_state(), inputs)["y"]


@pytest.mark.parametrize("opset", OPSETS)
def test_every_opset_that_onnx_knows_is_read(opset):
    graph = graph_from_model(model([node("Relu", ["x"], ["y"])], {"x": [1, 4]}, ["y"], opset=opset))
    x = np.array([[-1.0, 0.0, 2.0, -3.0]], np.float32)
    np.testing.assert_array_equal(computed(graph, x=x), np.maximum(x, 0))
    assert graph.opset == min(opset, 21)


def test_a_model_without_a_standard_op_needs_no_opset():
    scaler = node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1.0], scale=[2.0])
    made = model([scaler], {"x": [1, 4]}, ["y"])
    del made.opset_import[:]
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    x = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(computed(graph_from_model(made), x=x), np.zeros((1, 4)))


def test_upsample_of_opset_7_has_its_scales_as_an_attribute():
    up = node("Upsample", ["x"], ["y"], mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])
    graph = graph_from_model(model([up], {"x": [1, 1, 2, 2]}, ["y"], opset=7))
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    wanted = x.repeat(2, axis=2).repeat(2, axis=3)
    np.testing.assert_array_equal(computed(graph, x=x), wanted)
    engine = open_engine("opencl")
    network = engine.load(graph)
    np.testing.assert_array_equal(network.infer(network.new_state(), {"x": x})["y"], wanted)
    engine.close()


@newer
@pytest.mark.parametrize("opset", [24, 25, 28])
def test_an_op_with_a_body_is_that_body(opset):
    swish = node("Swish", ["x"], ["y"], alpha=2.0)
    graph = graph_from_model(model([swish], {"x": [1, 4]}, ["y"], opset=opset))
    assert "Sigmoid" in {each.op_type for each in graph.nodes}
    x = np.array([[-1.0, 0.0, 2.0, -3.0]], np.float32)
    np.testing.assert_allclose(computed(graph, x=x), x / (1 + np.exp(-2 * x)), rtol=1e-5)


@newer
def test_a_body_may_hold_ops_with_bodies():
    gate = node("SwiGLU", ["a", "b"], ["y"])
    graph = graph_from_model(model([gate], {"a": [4], "b": [4]}, ["y"], opset=28))
    a, b = np.array([-1, 0, 1, 2], np.float32), np.array([1, 2, 3, 4], np.float32)
    assert computed(graph, a=a, b=b).shape == (4,)
    assert graph.opset <= opsets.KNOWN


@newer
@pytest.mark.parametrize("keys", [3, 5])
def test_a_mask_shorter_than_the_keys_masks_the_rest(keys):
    attend = node("Attention", ["q", "k", "v", "m"], ["y"])
    sizes = {"q": [1, 1, 2, 4], "k": [1, 1, 5, 4], "v": [1, 1, 5, 4], "m": [2, keys]}
    random = np.random.default_rng(0)
    inputs = {name: random.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    graph = graph_from_model(model([attend], sizes, ["y"], opset=24))
    scores = inputs["q"] @ inputs["k"].swapaxes(2, 3) / 2
    scores[..., keys:] = -np.inf
    scores[..., :keys] += inputs["m"]
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(computed(graph, **inputs), shares @ inputs["v"], atol=1e-5)
    # a whole mask is what opset 23 knows: the op stays, for engines that have it
    assert ("Attention" in {each.op_type for each in graph.nodes}) == (keys == 5)


@newer
@pytest.mark.parametrize("engine", ["onnxruntime", "opencl"])
def test_mod_of_floats_has_the_sign_of_the_divisor_since_opset_28(engine):
    graph = graph_from_model(
        model([node("Mod", ["a", "b"], ["y"])], {"a": [4], "b": [4]}, ["y"], opset=28)
    )
    a, b = np.array([5, -5, 5, -5], np.float32), np.array([3, 3, -3, -3], np.float32)
    opened = open_engine(engine)
    network = opened.load(graph)
    found = network.infer(network.new_state(), {"a": a, "b": b})["y"]
    opened.close()
    np.testing.assert_allclose(found, np.mod(a, b))


@newer
def test_types_that_onnxruntime_has_of_an_older_version_only():
    """It has no kernel for DequantizeLinear of opset 28, which has types more."""
    nodes = [node("DequantizeLinear", ["x", "s"], ["y"])]
    kind = TensorProto.INT8
    made = model(nodes, {"x": [4]}, ["y"], {"s": np.float32(0.5)}, opset=28, kind=kind)
    found = computed(graph_from_model(made), x=np.array([1, -2, 3, 4], np.int8))
    np.testing.assert_array_equal(found, [0.5, -1, 1.5, 2])


@newer
def test_attributes_that_say_what_older_versions_do_are_left_out():
    blocks = node("SpaceToDepth", ["x"], ["y"], blocksize=2, mode="DCR")
    graph = graph_from_model(model([blocks], {"x": [1, 1, 4, 4]}, ["y"], opset=28))
    (only,) = graph.nodes
    assert only.op_type == "SpaceToDepth"
    assert "mode" not in only.attributes
    other = node("SpaceToDepth", ["x"], ["y"], blocksize=2, mode="CRD")
    graph = graph_from_model(model([other], {"x": [1, 2, 4, 4]}, ["y"], opset=28))
    assert "SpaceToDepth" not in {each.op_type for each in graph.nodes}


@newer
def test_half_precision_and_control_flow_of_a_new_opset():
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Swish", ["value"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value", TensorProto.FLOAT16, [4]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT16, [4]),
        ],
    )
    loop = node("Loop", ["times", "", "x"], ["y"], body=body)
    half = TensorProto.FLOAT16
    made = model([loop], {"x": [4]}, {"y": half}, {"times": np.int64(2)}, opset=25, kind=half)
    x = np.array([-1, 0, 1, 2], np.float32)

    def swish(value):
        return value / (1 + np.exp(-value))

    found = computed(graph_from_model(made), x=x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, swish(swish(x)), rtol=1e-5)


def test_what_onnx_may_add_later_is_left_to_onnxruntime():
    relu = node("Relu", ["x"], ["y"])
    assert not opsets.is_newer(relu, NEWEST)
