"""Models stored in half precision load as float32, right within half precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.lab.exits.storing import halves, narrow
from heimdall.system import paths

HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT
SHAPES = {
    "seg_selfie_256": None,
    "hand_palm_lite_192": None,
    "pose_movenet_lightning_192": None,
    "detect_nanodet_416": None,
    "hand_landmark_lite_224": None,
    "multistyle26_dynamic": [1, 3, 96, 96],
    "centerface_dynamic": [1, 3, 96, 96],
    "ppocrv4_det_dynamic": [1, 3, 96, 96],
}
# Ops whose float inputs stay float in a half-precision model, by the number of the input.
KEPT = {"Resize": (1, 2), "Upsample": (1,)}


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """Weights, inputs, outputs and what nodes make, all in float16."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    del graph.value_info[:]
    kept = {
        node.input[index]
        for node in graph.node
        for index in KEPT.get(node.op_type, ())
        if index < len(node.input)
    }
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = HALF
    stored = [item for item in graph.initializer if item.name not in kept]
    for node in graph.node:
        for item in node.attribute:
            if item.type == AttributeProto.TENSOR and not kept.intersection(node.output):
                stored.append(item.t)
            elif item.name == "to" and item.i == FLOAT:
                item.i = HALF
    for tensor in stored:
        if tensor.data_type == FLOAT:
            array = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return made


def through_onnxruntime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    raw = model.SerializeToString()
    session = ort.InferenceSession(raw, options, ["CPUExecutionProvider"])
    kinds = {
        each.name: np.float16 if "float16" in each.type else None for each in session.get_inputs()
    }
    return session.run(None, {k: v.astype(kinds[k] or v.dtype) for k, v in feeds.items()})


@pytest.mark.parametrize("name", SHAPES)
def test_bundled_networks_in_float16_give_the_results_of_the_half_network(
    tmp_path: Path, name: str
):
    whole = onnx.load(paths.ASSETS / "models" / f"{name}.onnx")
    for axis, size in enumerate(SHAPES[name] or ()):
        whole.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = size
    for value in whole.graph.output:
        value.type.tensor_type.ClearField("shape")
    path = tmp_path / "half.onnx"
    halves = halved(whole)
    for value in halves.graph.output:  # the checker wants to see one
        value.type.tensor_type.shape.dim.add().dim_param = "n"
    path.write_bytes(halves.SerializeToString())
    graph = load_graph(path)
    assert all(tensor.dtype != np.float16 for tensor in graph.tensors.values())
    inputs = sample_inputs(graph)
    found = through_onnxruntime(graph.model, inputs)
    # The same half weights in float32: exact but for rounding of intermediate halves.
    for value in halves.graph.output:
        value.type.tensor_type.ClearField("shape")
    wanted = through_onnxruntime(halves, inputs)
    for got, expected in zip(found, wanted, strict=True):
        assert got.dtype != np.float16
        assert got.shape == expected.shape
        largest = np.abs(expected.astype(np.float32)).max()
        assert np.abs(got - expected).max() <= 0.02 * max(1.0, float(largest))


@pytest.mark.parametrize("kind", [HALF, TensorProto.BFLOAT16])
def test_weights_casts_inputs_and_outputs_become_float32(kind):
    value = helper.make_tensor_value_info
    numbers = [1.0, 0.5, -2.0, 3.0]
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"]),
        helper.make_node("Cast", ["n"], ["m"], to=kind),
        helper.make_node("Add", ["a", "m"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [value("x", kind, [4]), value("n", TensorProto.INT64, [4])],
        [value("y", kind, [4])],
        [helper.make_tensor("w", kind, [4], numbers)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    made = graph_from_model(model)
    assert [tensor.dtype for tensor in (*made.inputs, *made.outputs)] == [
        np.float32,
        np.int64,
        np.float32,
    ]
    feeds: dict[str, np.ndarray] = {"x": np.full(4, 2, np.float32), "n": np.arange(4)}
    (found,) = through_onnxruntime(made.model, feeds)
    assert found.tolist() == [2 * number + index for index, number in enumerate(numbers)]


def weighty_model() -> onnx.ModelProto:
    """Two weights, an initialiser and a Constant node, a small bias, and one too large for half."""
    value = helper.make_tensor_value_info
    draw = np.random.default_rng(0).standard_normal
    kernel = draw((16, 3, 3, 3)).astype(np.float32)
    matrix, huge = draw((16, 16)).astype(np.float32), np.full(256, 1e6, np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "kernel", "bias"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Constant", [], ["matrix"], value=numpy_helper.from_array(matrix, "v")),
        helper.make_node("Mul", ["a", "huge"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 3, 1], name="turned"),
        helper.make_node("MatMul", ["c", "matrix"], ["y"]),
    ]
    weights = {"kernel": kernel, "bias": np.ones(16, np.float32), "huge": huge.reshape(16, 16)}
    graph = helper.make_graph(
        nodes,
        "net",
        [value("x", FLOAT, [1, 3, 16, 16])],
        [value("y", FLOAT, [1, 16, 16, 16])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_a_model_stored_in_half_loads_as_the_graph_it_was():
    whole = weighty_model()
    stored = onnx.ModelProto.FromString(whole.SerializeToString())
    moved = narrow(stored)
    assert 0 < moved < 2**-10
    onnx.checker.check_model(stored)
    kinds = {item.name: item.data_type for item in stored.graph.initializer}
    assert kinds == {"kernel__half": HALF, "bias": FLOAT, "huge": FLOAT, "matrix__half": HALF}
    was, now = graph_from_model(whole), graph_from_model(stored)
    assert [(n.op_type, n.inputs, n.outputs) for n in now.nodes] == [
        (n.op_type, n.inputs, n.outputs) for n in was.nodes
    ]
    for name, array in was.constants.items():
        rounded = name in ("kernel", "matrix")
        kept = array.astype(np.float16).astype(np.float32) if rounded else array
        np.testing.assert_array_equal(now.constants[name], kept)
    assert narrow(stored) == 0  # there is nothing left to do


def test_weights_that_an_older_file_lists_as_inputs_are_none_any_more():
    stored = weighty_model()
    stored.graph.input.append(helper.make_tensor_value_info("kernel", FLOAT, [16, 3, 3, 3]))
    narrow(stored)
    onnx.checker.check_model(stored)
    assert [each.name for each in graph_from_model(stored).inputs] == ["x"]


def test_weights_that_are_halves_are_told_apart():
    assert halves(weighty_model()) == {"bias"}


def test_any_runtime_reads_what_is_stored_in_half_as_we_do(tmp_path: Path):
    stored = weighty_model()
    narrow(stored)
    feeds = {"x": np.random.default_rng(1).random((1, 3, 16, 16), np.float32)}
    (theirs,) = through_onnxruntime(stored, feeds)
    (ours,) = through_onnxruntime(graph_from_model(stored).model, feeds)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_half_weight_that_others_read_too_keeps_its_cast():
    stored = weighty_model()
    narrow(stored)
    stored.graph.output.append(helper.make_tensor_value_info("kernel__half", HALF, [16, 3, 3, 3]))
    made = graph_from_model(stored)
    assert {tensor.name for tensor in made.outputs} == {"y", "kernel__half"}
    assert all(tensor.dtype == np.float32 for tensor in made.outputs)
