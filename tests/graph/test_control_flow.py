"""Ops that hold graphs: part of the graph where they can be, else the whole model is one node."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from heimdall.engine import open_engine
from heimdall.errors import ModelError
from heimdall.graph import whole
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.system import paths
from tests.graph.models import FLOAT, model


def run_whole(engine, graph, inputs):
    network = engine.load(graph)
    state = network.new_state()
    network.write(state, inputs)
    for index, op in enumerate(network.ops):
        run = network.run_fallback if op.fallback else network.run
        run(state, index, index + 1)
    return network.read(state)


X = np.array([[-1.0, 0.5, 2.0]], np.float32)


def branch(nodes, output="b", constants=None):
    return helper.make_graph(
        nodes,
        "branch",
        [],
        [helper.make_tensor_value_info(output, FLOAT, None)],
        [onnx.numpy_helper.from_array(a, name) for name, a in (constants or {}).items()],
    )


def choice(condition, then, other, name="choice", output="y"):
    return helper.make_node("If", [condition], [output], name, then_branch=then, else_branch=other)


RELU = [helper.make_node("Relu", ["x"], ["b"], "relu")]
TWICE = [helper.make_node("Mul", ["x", "two"], ["b"], "twice")]


def by_sampling_rate():
    """y = relu(x) at 16000, else 2x."""
    nodes = [
        helper.make_node("Equal", ["sr", "wanted"], ["is"], "is"),
        choice("is", branch(RELU), branch(TWICE, constants={"two": np.float32(2)})),
    ]
    made = model(nodes, {"x": [1, 3]}, ["y"], {"wanted": np.int64(16000)})
    made.graph.input.append(helper.make_tensor_value_info("sr", TensorProto.INT64, []))
    return made


def saved(path, proto):
    onnx.save(proto, path)
    return path


@pytest.mark.parametrize(("taken", "wanted"), [(True, np.maximum(X, 0)), (False, 2 * X)])
def test_a_branch_whose_condition_is_known_takes_the_place_of_the_if(taken, wanted):
    node = choice("c", branch(RELU), branch(TWICE, constants={"two": np.float32(2)}))
    graph = graph_from_model(model([node], {"x": [1, 3]}, ["y"], {"c": np.array(taken)}))
    assert {each.op_type for each in graph.nodes} <= {"Relu", "Mul", "Identity"}
    (made,) = run_whole(open_engine("onnxruntime"), graph, {"x": X}).values()
    np.testing.assert_allclose(made, wanted)


def test_a_condition_that_follows_from_shapes_is_known():
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["width"]),
        helper.make_node("Greater", ["width", "one"], ["wide"]),
        choice("wide", branch(RELU), branch([helper.make_node("Neg", ["x"], ["b"])])),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 3]}, ["y"], {"one": np.int64(1)}))
    assert "Relu" in {each.op_type for each in graph.nodes}


def test_branches_in_branches_and_twice_the_same_names():
    inner = branch([choice("c", branch(RELU), branch(RELU), "inner", "b")])
    nodes = [
        choice("c", inner, branch(RELU), "first", "m"),
        helper.make_node("Neg", ["m"], ["n"], "neg"),
        choice("c", branch([helper.make_node("Abs", ["n"], ["b"], "relu")]), branch(RELU)),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 3]}, ["y"], {"c": np.array(True)}))
    (made,) = run_whole(open_engine("onnxruntime"), graph, {"x": X}).values()
    np.testing.assert_allclose(made, np.maximum(X, 0))


def test_an_output_that_is_a_value_around_the_branch():
    node = choice("c", branch([], "x"), branch(RELU))
    with pytest.raises(ModelError):  # ONNX's checker wants an Identity there
        graph_from_model(model([node], {"x": [1, 3]}, ["y"], {"c": np.array(True)}))


def test_a_number_makes_an_input_known(tmp_path):
    path = saved(tmp_path / "vad.onnx", by_sampling_rate())
    kinds = {}
    for number in (16000, 8000):
        graph = load_graph(path, {"sr": number})
        assert [each.name for each in graph.inputs] == ["x"]
        kinds[number] = {each.op_type for each in graph.nodes}, graph.sha256
    assert kinds[16000] != kinds[8000]
    assert kinds[16000][1] != kinds[8000][1]


def test_a_number_that_the_input_cannot_be_is_refused(tmp_path):
    path = saved(tmp_path / "vad.onnx", by_sampling_rate())
    with pytest.raises(ModelError, match=r"'sr'.*int64.*0\.5"):
        load_graph(path, {"sr": 0.5})


@pytest.mark.parametrize("engine", ["onnxruntime", "opencl"])
def test_what_is_not_known_runs_whole_and_on_the_cpu(engine, caplog):
    caplog.set_level(logging.INFO)
    graph = graph_from_model(by_sampling_rate())
    assert [each.op_type for each in graph.nodes] == [whole.WHOLE]
    assert "'choice' (If)" in caplog.text
    assert "on the CPU" in caplog.text
    opened = open_engine(engine)
    for rate, wanted in ((16000, np.maximum(X, 0)), (8000, 2 * X)):
        (made,) = run_whole(opened, graph, {"x": X, "sr": np.array(rate)}).values()
        np.testing.assert_allclose(made, wanted)
    opened.close()


def test_a_loop_runs_whole():
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["value", "two"], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value", FLOAT, [1, 3]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, [1, 3]),
        ],
    )
    node = helper.make_node("Loop", ["times", "", "x"], ["y"], "loop", body=body)
    constants = {"times": np.int64(3), "two": np.float32(2)}
    graph = graph_from_model(model([node], {"x": [1, 3]}, ["y"], constants))
    (made,) = run_whole(open_engine("onnxruntime"), graph, {"x": X}).values()
    np.testing.assert_allclose(made, 8 * X)


def test_it_agrees_with_onnxruntime_on_the_file(tmp_path):
    path = saved(tmp_path / "vad.onnx", by_sampling_rate())
    graph = load_graph(path)
    inputs = sample_inputs(graph)
    (wanted,) = ort.InferenceSession(str(path)).run(None, inputs)
    (made,) = run_whole(open_engine("onnxruntime"), graph, inputs).values()
    np.testing.assert_allclose(made, wanted)


def test_one_that_fails_on_a_sample_says_what_to_do():
    reshape = branch([helper.make_node("Reshape", ["x", "four"], ["b"], "reshape")])
    nodes = [
        helper.make_node("Equal", ["sr", "wanted"], ["is"], "is"),
        choice("is", branch(RELU), reshape),
    ]
    constants = {"wanted": np.int64(16000), "four": np.array([4], np.int64)}
    made = model(nodes, {"x": [1, 3]}, ["y"], constants)
    made.graph.input.append(helper.make_tensor_value_info("sr", TensorProto.INT64, []))
    with pytest.raises(ModelError, match=r"If.*fails there.*shapes=\{'sr': 16000\}"):
        graph_from_model(made)


# --- free sides of pictures ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        (["batch", 3, "height", "width"], (1, 3, 480, 640)),
        ([1, "height", "width", 3], (1, 480, 640, 3)),
    ],
)
def test_free_sides_of_a_picture_are_a_cameras(declared, shape, caplog):
    caplog.set_level(logging.INFO)
    node = helper.make_node("Relu", ["image"], ["y"])
    graph = graph_from_model(model([node], {"image": declared}, ["y"]))
    assert graph.inputs[0].shape == shape
    assert f"shapes={{'image': {list(shape)}}}" in caplog.text
    assert not graph.metadata


@pytest.mark.parametrize("last", ["Reshape", "MatMul"])
def test_sides_that_were_assumed_are_named_where_they_do_not_fit(last):
    """One is refused here, the other by onnxruntime too: both lead to the shape."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node(last, ["flat", last], ["y"]),
    ]
    constants = {"Reshape": np.array([3, 7]), "MatMul": np.ones((21, 2), np.float32)}
    made = model(nodes, {"image": ["batch", 3, "height", "width"]}, ["y"], constants)
    with pytest.raises(
        ModelError, match=r"shapes=\{'image': \[1, 3, 480, 640\]\}: the network may"
    ):
        graph_from_model(made)


def test_a_network_of_free_sides_and_one_of_fixed_sides_keep_their_ops():
    """No size that was not given sends a network to the CPU."""
    for name, shape in (("ppocrv4_det", (1, 3, 480, 640)), ("centerface", (10, 3, 32, 32))):
        graph = load_graph(paths.ASSETS / "models" / f"{name}_dynamic.onnx")
        assert graph.inputs[0].shape == shape
        assert "Conv" in {each.op_type for each in graph.nodes}
    with pytest.raises(ModelError, match=r"Reshape.79.* free sides: .*shapes=\{'x': \[1, 3, 480"):
        load_graph(paths.ASSETS / "models" / "text_ppocrv4_rec_dynamic.onnx")


def test_what_is_no_picture_must_be_given():
    node = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(ModelError, match="free or empty dimensions"):
        graph_from_model(model([node], {"x": ["batch", 17, "height", "width"]}, ["y"]))
