"""Shapes follow from the inputs, whatever a file says; what is too large or does not fit is
refused with its node, before anything is allocated."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper

from heimdall.engine import open_engine
from heimdall.errors import ModelError
from heimdall.graph import checks, limits
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.graph.sessions import onnxruntime_version
from heimdall.graph.whole import WHOLE
from heimdall.system import paths
from tests.graph.models import FLOAT, model, node

SELFIE = paths.ASSETS / "models" / "seg_selfie_256.onnx"


# --- what a file says of shapes ---


def stale(claim: Callable[[onnx.ValueInfoProto], None], size: list[int]) -> onnx.ModelProto:
    """A network with the shapes of its tensors, as tools write it, whose input then changes."""
    nodes = [
        node("Relu", ["x"], ["a"], "first"),
        node("MaxPool", ["a"], ["b"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Sigmoid", ["b"], ["y"], "last"),
    ]
    made = onnx.shape_inference.infer_shapes(model(nodes, {"x": [1, 2, 8, 8]}, ["y"]))
    for value in [*made.graph.value_info, *made.graph.output]:
        claim(value)
    del made.graph.input[:]
    made.graph.input.append(helper.make_tensor_value_info("x", FLOAT, size))
    return made


def _keep(value: onnx.ValueInfoProto) -> None:
    pass


def _halve(value: onnx.ValueInfoProto) -> None:
    for dim in value.type.tensor_type.shape.dim:
        dim.dim_value = 1


@pytest.mark.parametrize("claim", [_keep, _halve])
@pytest.mark.parametrize("size", [[1, 2, 8, 8], [1, 2, 6, 10], [1, 2, 64, 2]])
def test_stale_shapes_of_a_file_are_not_believed(claim, size):
    graph = graph_from_model(stale(claim, size))
    assert graph.tensors["a"].shape == tuple(size)
    assert graph.outputs[0].shape == (1, 2, size[2] // 2, size[3] // 2)


def test_a_bundled_file_with_the_shapes_of_another_size_runs_at_its_own(tmp_path):
    made = onnx.load(paths.ASSETS / "models" / "multistyle26_dynamic.onnx")
    picture = made.graph.input[0]
    for axis, size in enumerate([1, 3, 64, 64]):
        picture.type.tensor_type.shape.dim[axis].dim_value = size
    made = onnx.shape_inference.infer_shapes(made)
    assert made.graph.value_info
    made.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 96
    path = tmp_path / "wide.onnx"
    path.write_bytes(made.SerializeToString())
    graph = load_graph(path)
    assert graph.outputs[0].shape[-2:] == (64, 96)
    session = ort.InferenceSession(graph.serialized, providers=["CPUExecutionProvider"])
    found = session.run(None, sample_inputs(graph))
    assert found[0].shape == graph.outputs[0].shape


@pytest.mark.parametrize("width", [300, 100000])
def test_a_network_of_one_size_is_refused_at_another_with_the_node_that_does_not_fit(
    tmp_path, width
):
    made = onnx.shape_inference.infer_shapes(onnx.load(SELFIE))
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_value = width
    path = tmp_path / "wide.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(ModelError, match=r"node '.+' \(\w+\) of .*wide\.onnx"):
        load_graph(path)


@pytest.mark.parametrize(
    ("nodes", "shape", "count"),
    [
        ([node("Split", ["x"], ["y", "unread"], axis=1)], [1, 4], 1),
        ([node("MaxPool", ["x"], ["y", "unread"], kernel_shape=[2, 2])], [1, 1, 4, 4], 1),
        ([node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["unread"])], [1, 4], 1),
    ],
)
def test_outputs_that_are_not_read_do_no_harm(nodes, shape, count):
    assert len(graph_from_model(model(nodes, {"x": shape}, ["y"])).outputs) == count


def test_a_graph_without_outputs_is_refused():
    made = model([node("Relu", ["x"], ["y"])], {"x": [1, 4]}, [])
    with pytest.raises(ModelError, match=r"outputs \[\]"):
        graph_from_model(made)


def test_an_output_named_twice_is_refused():
    made = model([node("Relu", ["x"], ["y"])], {"x": [1, 4]}, ["y", "y"])
    with pytest.raises(ModelError, match="outputs"):
        graph_from_model(made)


def test_onnxruntime_that_infers_another_shape_is_noticed(monkeypatch, caplog):
    from heimdall.graph import onnx_file

    optimised = onnx_file._optimised
    monkeypatch.setattr(onnx_file, "_optimised", lambda m: (optimised(m)[0], {"a": (9, 9)}))
    nodes = [node("Relu", ["x"], ["a"], "odd"), node("Tanh", ["a"], ["y"])]
    caplog.set_level(logging.INFO)
    (only,) = graph_from_model(model(nodes, {"x": [1, 4]}, ["y"])).nodes
    assert only.op_type == WHOLE
    assert re.search(r"'odd' \(Relu\).*onnxruntime \[9, 9\]", caplog.text)


# --- too large ---

HUGE = {
    "ConstantOfShape": ([node("ConstantOfShape", ["n"], ["c"], "big")], np.array([1 << 40])),
    "Expand": ([node("Expand", ["one", "n"], ["c"], "big")], np.array([1 << 20, 1 << 20])),
    "Tile": ([node("Tile", ["one", "n"], ["c"], "big")], np.array([1 << 40])),
    "Range": ([node("Range", ["zero", "n", "step"], ["c"], "big")], np.array(1 << 40)),
    "Pad": ([node("Pad", ["one", "n"], ["c"], "big")], np.array([0, 1 << 30])),
    "Resize": ([node("Resize", ["one", "", "n"], ["c"], "big")], np.array([1e10], np.float32)),
    "overflow": ([node("ConstantOfShape", ["n"], ["c"], "big")], np.array([1 << 40] * 4)),
    "one by one": (
        [
            node("Concat", ["one"] * 64, ["a"], "a", axis=0),
            node("Concat", ["a"] * 999, ["b"], "b", axis=0),
            node("Concat", ["b"] * 999, ["d"], "d", axis=0),
            node("Concat", ["d"] * 999, ["c"], "big", axis=0),
        ],
        np.array(0),
    ),
}


@pytest.mark.parametrize("how", HUGE)
def test_constants_of_terabytes_are_refused_with_their_node(how):
    nodes, size = HUGE[how]
    constants = {"n": size, "one": np.ones(1, np.float32)}
    constants |= {"zero": np.array(0), "step": np.array(1)}
    use = node("Mul", ["x", "w"], ["y"])
    nodes = [*nodes, node("ReduceMax", ["f"], ["w"]), use]
    nodes.insert(-2, node("Cast", ["c"], ["f"], to=FLOAT))
    with pytest.raises(ModelError, match="'big'"):
        graph_from_model(model(nodes, {"x": [1, 4]}, ["y"], constants))


def test_many_constants_of_allowed_sizes_are_refused_together(monkeypatch):
    monkeypatch.setattr(limits, "CONSTANT_BYTES", 1 << 20)
    nodes, last = [], "x"
    for index in range(9):
        nodes.append(node("ConstantOfShape", ["n"], [f"c{index}"], f"fill{index}"))
        nodes.append(node("Add", [last, f"c{index}"], [f"s{index}"]))
        last = f"s{index}"
    with pytest.raises(ModelError, match=r"'fill7' \(ConstantOfShape\).*constants"):
        graph_from_model(model(nodes, {"x": [1]}, [last], {"n": np.array([1 << 15])}))


@pytest.mark.parametrize("shape", [[1 << 40, 4], [1 << 31, 1], [1 << 20, 1 << 20]])
def test_inputs_of_terabytes_are_refused_by_name(shape):
    with pytest.raises(ModelError, match="input 'x'"):
        graph_from_model(model([node("Relu", ["x"], ["y"])], {"x": shape}, ["y"]))


def test_activations_of_terabytes_are_refused_with_their_node():
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Expand", ["a", "n"], ["b"], "big"),
        node("ReduceSum", ["b"], ["y"]),
    ]
    with pytest.raises(ModelError, match=r"'big' \(Expand\)"):
        graph_from_model(model(nodes, {"x": [1, 1]}, ["y"], {"n": np.array([1 << 20, 1 << 20])}))


def test_what_is_alive_at_once_must_fit_the_machine(monkeypatch):
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Tanh", ["a"], ["b"]),
        node("Add", ["a", "b"], ["y"], "sum"),
    ]
    made = model(nodes, {"x": [256, 1024]}, ["y"])
    monkeypatch.setattr(limits, "machine_bytes", lambda: 3 << 20)
    assert graph_from_model(made).nodes
    monkeypatch.setattr(limits, "machine_bytes", lambda: (3 << 20) - 1)
    with pytest.raises(ModelError, match=r"'sum' \(Add\).*3 MB with all that is alive"):
        graph_from_model(made)


def test_stored_tensors_with_impossible_sizes_are_refused_by_name():
    made = model([node("Mul", ["x", "w"], ["y"])], {"x": [4]}, ["y"], {"w": np.ones(4, "f4")})
    for dims in ([1 << 40], [-4], [5], [1 << 32, 1 << 32]):
        made.graph.initializer[0].dims[:] = dims
        with pytest.raises(ModelError, match="'w'"):
            graph_from_model(made)


# --- does not fit ---

X4 = {"x": [1, 4, 6, 6]}
CHANNELS = np.ones(4, np.float32)


def weights(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


MISFITS: dict[str, tuple[NodeProto, dict[str, list[int]], dict[str, Any]]] = {
    "negative pads": (
        node("Conv", ["x", "w"], ["y"], pads=[-1, 0, 0, 0]),
        X4,
        {"w": weights(2, 4, 3, 3)},
    ),
    "too few pads": (node("Conv", ["x", "w"], ["y"], pads=[1, 1]), X4, {"w": weights(2, 4, 3, 3)}),
    "no stride": (node("Conv", ["x", "w"], ["y"], strides=[0, 1]), X4, {"w": weights(2, 4, 3, 3)}),
    "negative stride": (
        node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[-1, 1]),
        X4,
        {},
    ),
    "no dilation": (
        node("Conv", ["x", "w"], ["y"], dilations=[0, 0]),
        X4,
        {"w": weights(2, 4, 3, 3)},
    ),
    "no group": (node("Conv", ["x", "w"], ["y"], group=0), X4, {"w": weights(2, 4, 3, 3)}),
    "negative group": (node("Conv", ["x", "w"], ["y"], group=-2), X4, {"w": weights(2, 4, 3, 3)}),
    "huge dilation": (
        node("Conv", ["x", "w"], ["y"], dilations=[1 << 40, 1]),
        X4,
        {"w": weights(2, 4, 3, 3)},
    ),
    "another kernel": (
        node("Conv", ["x", "w"], ["y"], kernel_shape=[5, 5]),
        X4,
        {"w": weights(2, 4, 3, 3)},
    ),
    "rank of weights": (node("Conv", ["x", "w"], ["y"]), X4, {"w": weights(2, 4, 3)}),
    "rank of bias": (
        node("Conv", ["x", "w", "b"], ["y"]),
        X4,
        {"w": weights(2, 4, 3, 3), "b": weights(2, 1)},
    ),
    "transposed channels": (
        node("ConvTranspose", ["x", "w"], ["y"]),
        X4,
        {"w": weights(3, 4, 2, 2)},
    ),
    "unknown auto_pad": (
        node("Conv", ["x", "w"], ["y"], auto_pad="SOME"),
        X4,
        {"w": weights(2, 4, 3, 3)},
    ),
    "pool kernel": (node("AveragePool", ["x"], ["y"], kernel_shape=[2]), X4, {}),
    "pool pads": (node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[2, 2, 2, 2]), X4, {}),
    "norm length": (
        node("BatchNormalization", ["x", "s", "s", "s", "w"], ["y"]),
        X4,
        {"s": CHANNELS, "w": weights(3)},
    ),
    "instance norm length": (
        node("InstanceNormalization", ["x", "s", "w"], ["y"]),
        X4,
        {"s": CHANNELS, "w": weights(1)},
    ),
    "slope": (node("PRelu", ["x", "w"], ["y"]), X4, {"w": weights(3, 1, 1)}),
    "Gemm": (node("Gemm", ["x", "w"], ["y"]), {"x": [2, 4]}, {"w": weights(3, 4)}),
    "Gemm rank": (node("Gemm", ["x", "w"], ["y"]), {"x": [2, 4, 1]}, {"w": weights(4, 4)}),
    "Gemm bias": (
        node("Gemm", ["x", "w", "b"], ["y"]),
        {"x": [2, 4]},
        {"w": weights(4, 3), "b": weights(4)},
    ),
    "MatMul": (node("MatMul", ["x", "w"], ["y"]), {"x": [2, 4]}, {"w": weights(3, 4)}),
    "broadcast": (node("Add", ["x", "w"], ["y"]), {"x": [2, 4]}, {"w": weights(3)}),
    "Gather outside": (node("Gather", ["x", "i"], ["y"], axis=1), X4, {"i": np.array([0, 4])}),
    "Gather before": (node("Gather", ["x", "i"], ["y"], axis=1), X4, {"i": np.array([-5])}),
    "Gather axis": (node("Gather", ["x", "i"], ["y"], axis=9), X4, {"i": np.array([0])}),
    "GatherND outside": (node("GatherND", ["x", "i"], ["y"]), X4, {"i": np.array([[0, 7]])}),
    "ScatterND outside": (
        node("ScatterND", ["x", "i", "u"], ["y"]),
        {"x": [4]},
        {"i": np.array([[4]]), "u": weights(1)},
    ),
    "Split sizes": (node("Split", ["x", "i"], ["y", "z"], axis=1), X4, {"i": np.array([1, 2])}),
    "Split negative": (node("Split", ["x", "i"], ["y", "z"], axis=1), X4, {"i": np.array([5, -1])}),
    "Reshape": (node("Reshape", ["x", "i"], ["y"]), X4, {"i": np.array([5, 5])}),
    "Reshape rest": (node("Reshape", ["x", "i"], ["y"]), X4, {"i": np.array([-1, 7])}),
    "Reshape negative": (node("Reshape", ["x", "i"], ["y"]), X4, {"i": np.array([-2, 72])}),
    "Expand": (node("Expand", ["x", "i"], ["y"]), X4, {"i": np.array([3, 6, 6])}),
    "Transpose": (node("Transpose", ["x"], ["y"], perm=[0, 1, 2, 2]), X4, {}),
    "Pad count": (node("Pad", ["x", "i"], ["y"]), X4, {"i": np.array([1, 1])}),
    "Pad reflect": (
        node("Pad", ["x", "i"], ["y"], mode="reflect"),
        X4,
        {"i": np.array([0, 0, 6, 0] * 2)},
    ),
    "Pad cut": (node("Pad", ["x", "i"], ["y"]), X4, {"i": np.array([0, 0, -7, 0] * 2)}),
    "Slice axes": (
        node("Slice", ["x", "a", "b", "i"], ["y"]),
        X4,
        {"a": np.array([0]), "b": np.array([1]), "i": np.array([4])},
    ),
    "Slice lengths": (
        node("Slice", ["x", "a", "b"], ["y"]),
        X4,
        {"a": np.array([0, 0]), "b": np.array([1])},
    ),
    "Resize scales": (
        node("Resize", ["x", "", "s"], ["y"]),
        X4,
        {"s": np.array([1, 1, -2, 2], np.float32)},
    ),
    "Resize mode": (node("Resize", ["x", "", "s"], ["y"], mode="magic"), X4, {"s": CHANNELS}),
    "Softmax axis": (node("Softmax", ["x"], ["y"], axis=4), X4, {}),
    "Reduce axes": (node("ReduceMean", ["x"], ["y"], axes=[7]), X4, {}),
    "LRN": (node("LRN", ["x"], ["y"], size=0), X4, {}),
    "DepthToSpace": (node("DepthToSpace", ["x"], ["y"], blocksize=3), X4, {}),
    "Clip": (node("Clip", ["x", "s"], ["y"]), X4, {"s": CHANNELS}),
    "Tile": (node("Tile", ["x", "i"], ["y"]), X4, {"i": np.array([1, 1])}),
    "TopK": (node("TopK", ["x", "i"], ["y", "z"]), X4, {"i": np.array([9])}),
    "Concat": (node("Concat", ["x", "w"], ["y"], axis=1), X4, {"w": weights(1, 4, 5, 6)}),
    "LayerNormalization": (node("LayerNormalization", ["x", "w"], ["y"]), X4, {"w": weights(5)}),
}


@pytest.mark.parametrize("what", MISFITS)
def test_attributes_and_weights_that_do_not_fit_are_refused_with_their_node(what):
    odd, inputs, constants = MISFITS[what]
    made = onnx.NodeProto()
    made.CopyFrom(odd)
    made.name = "odd"
    opset = 17 if odd.op_type == "LayerNormalization" else 13
    with pytest.raises(ModelError, match=rf"node 'odd' \({odd.op_type}\)"):
        graph_from_model(model([made], inputs, ["y"], constants, opset=opset))


@pytest.mark.parametrize("divisor", [0, -1, None])
def test_integer_divisions_that_would_end_the_process_are_refused(divisor, monkeypatch):
    nodes = [node("Div", ["x", "x" if divisor is None else "n"], ["q"], "odd")]
    nodes.append(node("Cast", ["q"], ["y"], to=FLOAT))
    constants = {} if divisor is None else {"n": np.array([divisor])}
    made = model(nodes, {"x": [4]}, ["y"], constants, kind=TensorProto.INT64)
    monkeypatch.setattr(checks, "onnxruntime_version", lambda: (1, 24))
    with pytest.raises(ModelError, match=r"'odd' \(Div\).*divides integers"):
        graph_from_model(made)


@pytest.mark.skipif(onnxruntime_version() < (1, 25), reason="there it ends the process")
def test_a_computed_divisor_that_is_zero_is_said_by_onnxruntime():
    nodes = [node("Div", ["x", "by"], ["q"], "odd"), node("Cast", ["q"], ["y"], to=FLOAT)]
    made = model(nodes, {"x": [2], "by": [2]}, ["y"], kind=TensorProto.INT64)
    network = open_engine("onnxruntime").load(graph_from_model(made))
    x, by = np.array([7, 9]), np.array([2, 3])
    assert network.infer(network.new_state(), {"x": x, "by": by})["y"].tolist() == [3, 3]
    with pytest.raises(ModelError, match="division by zero"):
        network.infer(network.new_state(), {"x": x, "by": np.array([1, 0])})


def test_a_constant_of_many_steps_is_computed_before_it_decides_a_shape():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "two"], ["h"], axis=0),
        node("Div", ["h", "two"], ["half"]),
        node("Mul", ["half", "half"], ["square"]),
        node("Concat", ["square", "minus"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = {"two": np.array([2]), "minus": np.array([-1])}
    graph = graph_from_model(model(nodes, {"x": [1, 4, 8, 3]}, ["y"], constants))
    assert graph.outputs[0].shape == (16, 6)
    assert [each.op_type for each in graph.nodes] == ["Reshape"]


def test_ops_of_onnxruntime_alone_have_the_shapes_that_it_infers():
    gelu = node("Gelu", ["x"], ["y"], domain="com.microsoft")
    made = model([gelu], {"x": [2, 3]}, ["y"])
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert graph_from_model(made).outputs[0].shape == (2, 3)


def test_a_folded_number_stays_a_number_without_dimensions():
    nodes = [node("ReduceSum", ["w"], ["s"], keepdims=0), node("Identity", ["s"], ["y"])]
    nodes.append(node("Mul", ["x", "s"], ["z"]))
    graph = graph_from_model(model(nodes, {"x": [4]}, ["y", "z"], {"w": np.ones(3, np.float32)}))
    assert graph.outputs[0].shape == ()
    assert [array.shape for array in graph.constants.values()] == [()]


def test_a_part_without_elements_is_left_out_where_parts_are_joined():
    """As ``torch.cat([turned, x[..., size:]], -1)`` of heads that turn as a whole."""
    nodes = [
        node("Slice", ["x", "four", "end", "axis"], ["rest"], "nothing"),
        node("Neg", ["x"], ["minus"], "minus"),
        node("Concat", ["minus", "rest"], ["y"], "join", axis=1),
    ]
    numbers = {"four": 4, "end": np.iinfo(np.int64).max, "axis": 1}
    constants = {name: np.array([number], np.int64) for name, number in numbers.items()}
    graph = graph_from_model(model(nodes, {"x": [2, 4]}, ["y"], constants))
    assert "nothing" not in {each.name for each in graph.nodes}
    assert graph.tensors["y"].shape == (2, 4)


# --- sizes that onnxruntime decides ---

AXES = st.lists(
    st.tuples(st.integers(1, 64), st.integers(5, 300).map(lambda n: n / 100)),
    min_size=2,
    max_size=2,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from([("Upsample", 9), *(("Resize", n) for n in (10, 11, 13, 18, 19))]), AXES)
@example(("Resize", 13), [(10, 0.7), (30, 0.9)])
@example(("Resize", 10), [(20, 0.35), (10, 0.7)])
@example(("Upsample", 9), [(10, 1.1), (30, 1.9)])
def test_what_is_resized_is_as_large_as_in_onnxruntime(op, axes):
    """ONNX's own inference multiplies in float64: 10 by 0.7 is 6 there."""
    axes = [(n, scale + 1 if op[0] == "Upsample" else scale) for n, scale in axes]
    scales = np.array([1, 1, *(scale for _, scale in axes)], np.float32)
    assume(all(int(np.float32(n) * s) > 0 for (n, _), s in zip(axes, scales[2:], strict=True)))
    name, opset = op
    how = {"coordinate_transformation_mode": "asymmetric"} if opset > 10 else {}
    inputs = ["x", "s"] if opset < 11 else ["x", "roi", "s"]
    nodes = [node(name, inputs, ["r"], **how), node("Relu", ["r"], ["y"])]
    constants = {"s": scales, "roi": np.zeros(0, np.float32)}
    made = model(nodes, {"x": [1, 1, *(n for n, _ in axes)]}, ["y"], constants, opset)
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    x = np.random.default_rng(0).standard_normal((1, 1, *(n for n, _ in axes)), np.float32)
    (wanted,) = ort.InferenceSession(made.SerializeToString(), quiet).run(None, {"x": x})
    graph = graph_from_model(made)
    assert graph.outputs[0].shape == wanted.shape
    assert WHOLE not in {each.op_type for each in graph.nodes}
    network = open_engine("onnxruntime").load(graph)
    np.testing.assert_array_equal(network.infer(network.new_state(), {"x": x})["y"], wanted)
