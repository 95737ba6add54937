"""What no engine of a GPU knows runs whole on the CPU, as onnxruntime runs the file."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from heimdall.engine import open_engine
from heimdall.errors import ModelError
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs, zero_inputs
from heimdall.graph.whole import WHOLE
from heimdall.inspection.checking import check_models
from tests.graph.models import FLOAT, model, node

FOUND = {"boxes": [1, 8, 4], "scores": [1, 1, 8]}


def detector():
    """The chosen ones of eight boxes: how many there are depends on the scores."""
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"], "n"),
        node("Gather", ["chosen", "last"], ["which"], axis=1),
        node("Gather", ["boxes", "which"], ["y"], axis=1),
    ]
    constants = {
        "most": np.array([5]),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([0.3], np.float32),
        "last": np.int64(2),
    }
    made = model(nodes, FOUND, ["y"], constants, opset=17)
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, [1, "found", 4]))
    return made


def some(made, seed=0):
    random = np.random.default_rng(seed)
    kind_of = helper.tensor_dtype_to_np_dtype
    return {
        value.name: random.random(
            [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        ).astype(kind_of(value.type.tensor_type.elem_type))
        for value in made.graph.input
    }


def reference(made, inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(made.SerializeToString(), options)
    return session.run(None, inputs)


@pytest.fixture(scope="module", params=["onnxruntime", "opencl"])
def engine(request):
    opened = open_engine(request.param)
    yield opened
    opened.close()


def cast(kind, **options):
    """x through another type and back."""
    nodes = [node("Cast", ["x"], ["z"], "small", to=kind), node("Cast", ["z"], ["y"], to=FLOAT)]
    return model(nodes, {"x": [4]}, ["y"], opset=21, **options)


UNKNOWN = {
    "suppression": detector(),
    "where it is not zero": model([node("NonZero", ["x"], ["y"])], {"x": [2, 3]}, {"y": 7}),
    "float8": cast(TensorProto.FLOAT8E4M3FN),
    "text": model(
        [
            node("Cast", ["x"], ["t"], to=TensorProto.STRING),
            node("Cast", ["t"], ["y"], to=FLOAT),
        ],
        {"x": [4]},
        ["y"],
        opset=17,
    ),
    "sequence": model(
        [node("SplitToSequence", ["x"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        {"x": [4, 2]},
        ["y"],
        opset=17,
    ),
    "nothing is left": model(
        [node("Slice", ["x", "from", "to"], ["y"])],
        {"x": [1, 4]},
        ["y"],
        {"from": np.array([0, 0]), "to": np.array([1, 0])},
    ),
    "a quantised op of another kind": model(
        [
            node("QuantizeLinear", ["x", "s"], ["q"]),
            node("DequantizeLinear", ["q", "s"], ["y"]),
        ],
        {"x": [1, 4, 2]},
        ["y"],
        {"s": np.full(4, 0.1, np.float32)},
    ),
    "a scale that is computed": model(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("Cast", ["q"], ["y"], to=FLOAT)],
        {"x": [4], "s": []},
        ["y"],
        {"z": np.uint8(3)},
    ),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_it_is_as_in_onnxruntime(what, engine, caplog):
    caplog.set_level(logging.INFO)
    made = UNKNOWN[what]
    graph = graph_from_model(made)
    network = engine.load(graph)
    for seed in range(3):
        inputs = some(made, seed)
        found = network.infer(network.new_state(), inputs)
        for each, wanted in zip(found.values(), reference(made, inputs), strict=True):
            assert each.dtype == wanted.dtype
            np.testing.assert_array_equal(each, wanted)
    if [each.op_type for each in graph.nodes] == [WHOLE]:
        assert "all of it runs on the CPU" in caplog.text


@pytest.mark.parametrize("what", ["no order", "no shape", "no name", "no type", "old constants"])
def test_what_only_the_checker_refuses_is_run(engine, what: str):
    """onnxruntime sorts nodes, infers shapes and types, and needs no name."""
    nodes = [node("Add", ["x", "w"], ["a"], "first"), node("Relu", ["a"], ["y"], "second")]
    made = model(nodes, {"x": [1, 3]}, ["y"], {"w": np.array([1, -2, 3], np.float32)}, opset=17)
    if what == "no order":
        made.graph.node.reverse()
    elif what == "no shape":
        made.graph.output[0].type.tensor_type.ClearField("shape")
    elif what == "no name":
        made.graph.name = ""
    elif what == "no type":
        made.graph.output[0].ClearField("type")
    else:
        made.ir_version = 3
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(made)
    network = engine.load(graph_from_model(made))
    found = network.infer(network.new_state(), {"x": np.array([[0, 1, -5]], np.float32)})
    np.testing.assert_array_equal(found["y"], [[1, 0, 0]])


def test_an_input_without_a_shape_needs_one(tmp_path):
    made = model([node("Relu", ["x"], ["y"])], {"x": [1, 3]}, ["y"], opset=17)
    for value in (made.graph.input[0], made.graph.output[0]):
        value.type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match=r"'x' of .* has no shape: choose one"):
        graph_from_model(made)
    onnx.save(made, str(tmp_path / "a.onnx"))
    assert load_graph(tmp_path / "a.onnx", {"x": [2, 5]}).outputs[0].shape == (2, 5)


def test_sizes_that_depend_on_the_data_are_free():
    graph = graph_from_model(detector())
    (output,) = graph.outputs
    assert output.shape == (1, -1, 4)
    assert output.bytes == 16
    assert output.fits((1, 0, 4))
    assert not output.fits((1, 4))
    assert [each.op_type for each in graph.nodes] == [WHOLE]


def test_the_null_engine_has_one_of_what_is_free():
    network = open_engine("null").load(graph_from_model(detector()))
    found = network.infer(network.new_state(), some(detector()))
    assert found["y"].shape == (1, 1, 4)


def test_check_lists_it(tmp_path):
    onnx.save(detector(), tmp_path / "detector.onnx")
    engine = open_engine("opencl")
    (entry,) = check_models([tmp_path / "detector.onnx"], engine)
    engine.close()
    assert entry["error"] is None
    assert entry["fallback_ops"] == ["detector"]
    assert entry["max_rel_error"] == 0


def test_it_is_kept_with_its_note(tmp_path, caplog):
    onnx.save(detector(), tmp_path / "detector.onnx")
    load_graph(tmp_path / "detector.onnx")
    caplog.clear()
    caplog.set_level(logging.INFO)
    graph = load_graph(tmp_path / "detector.onnx")
    assert "'n' (NonMaxSuppression)" in caplog.text
    assert graph.outputs[0].shape == (1, -1, 4)


def test_outputs_that_are_no_tensors_are_left_out_with_a_word(caplog):
    """As scikit-learn's converter writes a classifier: a label, and a list of probabilities."""
    caplog.set_level(logging.INFO)
    nodes = [
        node(
            "LinearClassifier",
            ["x"],
            ["label", "p"],
            domain="ai.onnx.ml",
            coefficients=[1.0, 0.0, 0.0, 1.0],
            intercepts=[0.0, 0.0],
            classlabels_ints=[3, 7],
            multi_class=1,
            post_transform="SOFTMAX",
        ),
        node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[3, 7]),
    ]
    made = model(nodes, {"x": ["batch", 2]}, {"label": TensorProto.INT64})
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, None))
    listed = helper.make_value_info("maps", helper.make_sequence_type_proto(kind))
    made.graph.output.append(listed)
    graph = graph_from_model(made)
    assert [each.name for each in graph.outputs] == ["label"]
    assert "['maps']" in caplog.text
    network = open_engine("onnxruntime").load(graph)
    inputs = {"x": np.array([[0.0, 1.0]], np.float32)}
    assert network.infer(network.new_state(), inputs)["label"].tolist() == [7]


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT4", "BFLOAT16"])
def test_inputs_and_outputs_of_types_that_numpy_lacks_are_the_next_that_it_has(kind):
    odd = TensorProto.DataType.Value(kind)
    op = "Transpose" if kind.endswith("INT4") else "Identity"
    made = model([node(op, ["x"], ["y"])], {"x": [2, 2]}, {"y": odd}, opset=21, kind=odd)
    made.ir_version = 10
    graph = graph_from_model(made)
    wanted = {"INT4": np.int8, "UINT4": np.uint8}.get(kind, np.float32)
    assert [each.dtype for each in (*graph.inputs, *graph.outputs)] == [wanted, wanted]
    network = open_engine("onnxruntime").load(graph)
    found = network.infer(network.new_state(), {"x": np.arange(4).reshape(2, 2).astype(wanted)})[
        "y"
    ]
    assert sorted(found.flat) == [0, 1, 2, 3]


def test_an_input_that_decides_a_size_is_given_numbers_that_run():
    """As the size of the picture that a segmenter's masks are enlarged to."""
    nodes = [
        node("Cast", ["size"], ["sizes"], to=TensorProto.INT64),
        node("Concat", ["first", "sizes"], ["all"], axis=0),
        node("Resize", ["x", "", "", "all"], ["y"]),
    ]
    made = model(nodes, {"x": [1, 1, 4, 4], "size": [2]}, ["y"], {"first": np.array([1, 1])})
    graph = graph_from_model(made)
    network = open_engine("onnxruntime").load(graph)
    for inputs in (sample_inputs(graph), zero_inputs(graph)):
        assert network.infer(network.new_state(), inputs)["y"].size
    large = {"x": np.ones((1, 1, 4, 4), np.float32), "size": np.array([8, 12], np.float32)}
    assert network.infer(network.new_state(), large)["y"].shape == (1, 1, 8, 12)


def test_what_onnxruntime_does_not_load_either_is_refused_with_both_reasons():
    odd = node("QLinearWhere", ["x"] * 9, ["y"], "odd", domain="com.microsoft")
    with pytest.raises(ModelError, match=r"'odd' \(QLinearWhere\).*; nor does onnxruntime"):
        graph_from_model(model([odd], {"x": [4]}, ["y"]))


def test_inputs_that_are_no_tensors_are_refused_by_name():
    made = model([node("SequenceLength", ["x"], ["y"])], {"x": [4]}, {"y": TensorProto.INT64})
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    made.graph.input[0].type.CopyFrom(kind)
    with pytest.raises(ModelError, match="'x' of model is not a tensor"):
        graph_from_model(made)


def test_a_fault_in_reading_is_not_blamed_on_the_file(monkeypatch):
    def fail(*args):
        raise AttributeError("a slip")

    monkeypatch.setattr("heimdall.graph.inference.infer", fail)
    with pytest.raises(AttributeError, match="a slip"):
        graph_from_model(model([node("Relu", ["x"], ["y"])], {"x": [4]}, ["y"]))


def test_a_name_that_is_no_text_is_the_files(tmp_path):
    made = model([node("Relu", ["x"], ["y"], "place")], {"x": [4]}, ["y"])
    raw = made.SerializeToString().replace(b"place", b"pl\xffce")
    (tmp_path / "odd.onnx").write_bytes(raw)
    with pytest.raises(ModelError, match="a name in it is no text"):
        load_graph(tmp_path / "odd.onnx")
