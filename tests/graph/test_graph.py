"""Reading ONNX files: what becomes of good ones, and what is said about bad ones."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.system import paths

FLOAT = TensorProto.FLOAT
SELFIE = paths.ASSETS / "models" / "seg_selfie_256.onnx"
CLASSICS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def model(nodes, inputs, outputs, constants=None, opset=13, ir_version=8, domains=()):
    """A model from nodes; ``inputs`` maps names to shapes, ``outputs`` are names."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
    with contextlib.suppress(Exception):  # models that are bad on purpose
        made = onnx.shape_inference.infer_shapes(made)  # the checker wants output shapes
    for value in made.graph.output:
        if not value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.shape.dim.add().dim_param = "n"
    return made


def relu(**options):
    return model(
        [helper.make_node("Relu", ["x"], ["y"], "act")], {"x": [1, 3, 8, 8]}, ["y"], **options
    )


def save(tmp_path, proto, name="net.onnx"):
    path = tmp_path / name
    path.write_bytes(proto.SerializeToString())
    return path


# --- good files ------------------------------------------------------------------------


def test_nodes_are_in_order_with_shapes_types_and_names():
    graph = load_graph(SELFIE)
    made = {tensor.name for tensor in graph.inputs} | set(graph.constants)
    for node in graph.nodes:
        assert {name for name in node.inputs if name} <= made
        made |= set(node.outputs)
    assert {tensor.name for tensor in graph.outputs} <= made
    assert graph.inputs[0].shape == (1, 256, 256, 3)
    assert graph.inputs[0].bytes == 256 * 256 * 3 * 4
    names = [node.name for node in graph.nodes]
    assert len(set(names)) == len(names)
    assert [node.name for node in graph.model.graph.node] == names


def test_batch_norm_and_constant_arithmetic_are_folded():
    weights = np.ones((4, 3, 1, 1), np.float32)
    stats = {f"bn{i}": np.ones(4, np.float32) for i in range(4)}
    nodes = [
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array(2, "f"))),
        helper.make_node("Mul", ["w", "two"], ["w2"]),
        helper.make_node("Conv", ["x", "w2"], ["c"]),
        helper.make_node("BatchNormalization", ["c", *stats], ["y"]),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 3, 4, 4]}, ["y"], {"w": weights, **stats}))
    assert [node.op_type for node in graph.nodes] == ["Conv"]


def test_nodes_are_needed_where_an_output_depends_on_them():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Exp", ["x"], ["b"], "aside"),
        helper.make_node("Tanh", ["a"], ["y"], "last"),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 3, 4, 4]}, ["y"]))
    assert graph.needed == {"first", "last"}


def test_free_batch_dimension_is_one_picture():
    assert graph_from_model(
        model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["N", 3, 4, 4]}, ["y"])
    ).inputs[0].shape == (1, 3, 4, 4)


@pytest.mark.parametrize("sizes", [[16000], [128], [3, 4, 4], [2, 3, 4, 5]])
def test_a_free_batch_is_one_for_any_number_of_axes(sizes):
    graph = graph_from_model(
        model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["N", *sizes]}, ["y"])
    )
    assert graph.inputs[0].shape == (1, *sizes)


def test_sizes_of_one_name_are_the_same(tmp_path):
    nodes = [helper.make_node("Add", ["x", "z"], ["a"]), helper.make_node("Mul", ["a", "n"], ["y"])]
    free = model(nodes, {"x": ["N", "L"], "z": ["N", "L"], "n": ["N", 1]}, ["y"])
    graph = load_graph(save(tmp_path, free), {"x": [2, 16]})
    assert [each.shape for each in graph.inputs] == [(2, 16), (2, 16), (2, 1)]
    line = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["samples"]}, ["y"])
    with pytest.raises(ModelError, match=r"'x'.*'samples'.*shapes="):
        graph_from_model(line)


def test_shapes_replace_free_and_fixed_dimensions(tmp_path):
    free = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 3, "h", "w"]}, ["y"])
    assert load_graph(save(tmp_path, free), (1, 3, 6, 5)).outputs[0].shape == (1, 3, 6, 5)
    assert load_graph(save(tmp_path, relu()), {"x": [2, 3, 4, 4]}).outputs[0].shape == (2, 3, 4, 4)


def test_identity_depends_on_the_file_and_the_shapes(tmp_path):
    path = save(tmp_path, relu())
    one, again, other = load_graph(path), load_graph(path), load_graph(path, (1, 3, 4, 4))
    assert one.sha256 == again.sha256
    assert one.sha256 != other.sha256


def test_consumers_and_producers_lead_along_the_edges():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Sigmoid", ["a"], ["y"], "second"),
        helper.make_node("Add", ["a", "a"], ["z"], "third"),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 3, 4, 4]}, ["y", "z"]))
    assert [node.name for node in graph.consumers["a"]] == ["second", "third"]
    assert graph.producers["a"].name == "first"


def test_weights_that_are_also_inputs_become_constants():
    weights = np.ones((4, 3, 1, 1), np.float32)
    conv = helper.make_node("Conv", ["x", "w"], ["y"])
    shapes = {"x": [1, 3, 4, 4], "w": [4, 3, 1, 1]}
    graph = graph_from_model(model([conv], shapes, ["y"], {"w": weights}, ir_version=3, opset=9))
    assert [tensor.name for tensor in graph.inputs] == ["x"]
    assert "w" in graph.constants


def test_constant_of_a_shape_that_is_computed_is_folded_with_what_uses_it():
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Cos", ["zeros"], ["ones"]),
        helper.make_node("Add", ["x", "ones"], ["y"]),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 2, 3, 3]}, ["y"]))
    assert [node.op_type for node in graph.nodes] == ["Add"]
    assert any((array == 1).all() for array in graph.constants.values())


def test_output_that_is_constant_or_an_input_is_written_by_a_node():
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    priors = np.arange(4, dtype=np.float32)
    graph = graph_from_model(model(nodes, {"x": [1, 1, 2, 2]}, ["y", "p"], {"p": priors}))
    assert graph.producers["p"].op_type == "Identity"
    assert graph.tensors["p"].shape == (4,)


def test_unnamed_and_doubly_named_nodes_get_names_of_their_own():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "same"),
        helper.make_node("Sigmoid", ["a"], ["b"], "same"),
        helper.make_node("Tanh", ["b"], ["y"]),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 1, 2, 2]}, ["y"]))
    assert len({node.name for node in graph.nodes}) == 3


def test_model_functions_are_inlined():
    body = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 13)],
    )
    proto = model(
        [helper.make_node("Twice", ["x"], ["y"], domain="own")],
        {"x": [1, 2]},
        ["y"],
        domains=("own",),
    )
    proto.functions.append(body)
    assert [node.op_type for node in graph_from_model(proto).nodes] == ["Add"]


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v1", "densenet121"])
def test_classics_of_the_onnx_wheel_load(name):
    graph = load_graph(CLASSICS / f"light_{name}.onnx")
    assert graph.outputs[0].shape[:2] == (1, 1000)
    assert "ConstantOfShape" not in {node.op_type for node in graph.nodes}


# --- bad files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"hello, this is no model\n" * 9, bytes(range(256)) * 4, b"\x00" * 64]
)
def test_file_that_is_no_model_is_refused_by_name(tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.onnx"):
        load_graph(path)


def test_missing_file_and_folder_are_refused_by_name(tmp_path):
    with pytest.raises(ModelError, match=r"missing\.onnx.*[Nn]o such file"):
        load_graph(tmp_path / "missing.onnx")
    with pytest.raises(ModelError, match=r"cannot read model"):
        load_graph(tmp_path)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(part=st.floats(0.0, 0.999))
def test_truncated_file_is_refused(tmp_path, part):
    raw = SELFIE.read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(raw[: int(len(raw) * part)])
    with pytest.raises(ModelError, match=r"cut\.onnx"):
        load_graph(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(0, 4000), value=st.integers(0, 255))
def test_damaged_byte_gives_a_graph_or_a_model_error(tmp_path, place, value):
    raw = bytearray(relu().SerializeToString())
    raw[place % len(raw)] = value
    path = tmp_path / "damaged.onnx"
    path.write_bytes(raw)
    with contextlib.suppress(ModelError):  # any other exception fails the test
        assert load_graph(path).nodes


@pytest.mark.parametrize("opset", [6, 99])
def test_opset_out_of_range_is_refused(opset):
    newest = onnx.defs.onnx_opset_version()
    with pytest.raises(ModelError, match=rf"opset {opset}; supported are 7 to {newest}"):
        graph_from_model(relu(opset=opset))


@pytest.mark.parametrize("domain", ["", "some.company"])
def test_unknown_op_is_refused_with_its_node(domain):
    node = helper.make_node("Frobnicate", ["x"], ["y"], "strange", domain=domain)
    domains = (domain,) if domain else ()
    with pytest.raises(ModelError, match="Frobnicate") as caught:
        graph_from_model(model([node], {"x": [1, 2]}, ["y"], domains=domains))
    assert "strange" in str(caught.value)


@pytest.mark.parametrize("places", [[1, 5], [[0, 1], [1, 2]]])
@pytest.mark.parametrize("as_constant", [True, False])
def test_sparse_weights_become_dense(places, as_constant):
    values = helper.make_tensor("thin", FLOAT, [2], [1.0, 2.0])
    at = numpy_helper.from_array(np.array(places), "at")
    sparse = helper.make_sparse_tensor(values, at, [2, 3])
    nodes = [helper.make_node("Mul", ["x", "thin"], ["y"])]
    if as_constant:
        nodes.insert(0, helper.make_node("Constant", [], ["thin"], sparse_value=sparse))
    proto = model(nodes, {"x": [2, 3]}, ["y"])
    if not as_constant:
        proto.graph.sparse_initializer.append(sparse)
    (weights,) = graph_from_model(proto).constants.values()
    np.testing.assert_array_equal(weights, [[0, 1, 0], [0, 0, 2]])


def test_a_sparse_weight_of_terabytes_is_refused_by_name():
    proto = relu()
    values = helper.make_tensor("thin", FLOAT, [1], [1.0])
    places = helper.make_tensor("at", TensorProto.INT64, [1], [0])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1 << 40]))
    with pytest.raises(ModelError, match="sparse tensor 'thin'"):
        graph_from_model(proto)


def test_free_dimensions_without_a_shape_are_refused_with_an_example():
    free = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 7, "h", "w"]}, ["y"])
    with pytest.raises(ModelError, match=r"'x'.*'h', 'w'.*shapes="):
        graph_from_model(free)


@pytest.mark.parametrize(
    "shapes",
    [(3, 8, 8), (1, 3, 0, 8), (1, 3, -8, 8), (1, 3, 8.5, 8), {"y": (1, 3, 8, 8)}, (1, "a", 2, 3)],
)
def test_shape_that_does_not_fit_is_refused(tmp_path, shapes):
    with pytest.raises(ModelError, match=r"net\.onnx"):
        load_graph(save(tmp_path, relu()), shapes)


def test_weights_that_do_not_fit_are_refused_with_their_node():
    conv = helper.make_node("Conv", ["x", "w"], ["y"], "odd")
    weights = np.ones((4, 5, 1, 1), np.float32)
    with pytest.raises(ModelError, match="odd"):
        graph_from_model(model([conv], {"x": [1, 3, 4, 4]}, ["y"], {"w": weights}))


def test_impossible_constant_is_refused_with_its_node():
    fill = helper.make_node("ConstantOfShape", ["huge"], ["big"], "fill")
    add = helper.make_node("Add", ["x", "big"], ["y"])
    huge = {"huge": np.array([1 << 40])}
    with pytest.raises(ModelError, match=r"'fill' \(ConstantOfShape\)"):
        graph_from_model(model([fill, add], {"x": [1]}, ["y"], huge))


def external(location):
    conv = helper.make_node("Conv", ["x", "w"], ["y"])
    proto = model([conv], {"x": [1, 3, 4, 4]}, ["y"], {"w": np.ones((4, 3, 1, 1), np.float32)})
    tensor = proto.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, location, offset=0, length=48)
    tensor.ClearField("raw_data")
    return proto


def test_external_weights_are_read_from_the_models_folder(tmp_path):
    (tmp_path / "weights.bin").write_bytes(np.arange(12, dtype=np.float32).tobytes())
    graph = load_graph(save(tmp_path, external("weights.bin")))
    assert any(array.size == 12 and array.max() == 11 for array in graph.constants.values())


@pytest.mark.parametrize("how", ["parent", "absolute", "missing"])
def test_external_weights_elsewhere_are_refused(tmp_path, how):
    (tmp_path / "weights.bin").write_bytes(np.ones(12, np.float32).tobytes())
    inner = tmp_path / "inner"
    inner.mkdir()
    places = {
        "parent": "../weights.bin",
        "absolute": str(tmp_path / "weights.bin"),
        "missing": "no",
    }
    with pytest.raises(ModelError, match=r"net\.onnx"):
        load_graph(save(inner, external(places[how])))


def test_external_weights_through_a_link_out_of_the_folder_are_refused(tmp_path):
    (tmp_path / "weights.bin").write_bytes(np.ones(12, np.float32).tobytes())
    inner = tmp_path / "inner"
    inner.mkdir()
    try:
        (inner / "link.bin").symlink_to(tmp_path / "weights.bin")
    except OSError:
        pytest.skip("no symbolic links here")
    with pytest.raises(ModelError, match=r"net\.onnx"):
        load_graph(save(inner, external("link.bin")))


@pytest.mark.parametrize("opset", [10, 13, 22])
def test_a_window_that_starts_behind_the_picture_is_not_counted(opset):
    pool: dict[str, Any] = {"kernel_shape": [1, 1], "strides": [2, 2], "ceil_mode": 1}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], "pool", **pool),
        helper.make_node("AveragePool", ["a"], ["b"], **pool),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    graph = graph_from_model(model(nodes, {"x": [1, 3, 14, 13]}, ["y"], opset=opset))
    assert graph.tensors["a"].shape == (1, 3, 7, 7)
    assert graph.outputs[0].shape == (1, 3, 4, 4)


def test_a_window_larger_than_its_input_is_refused_with_its_node():
    conv = helper.make_node("Conv", ["x", "w"], ["y"], "far", strides=[2, 2])
    weights = np.ones((4, 3, 5, 5), np.float32)
    with pytest.raises(ModelError, match=r"'far' \(Conv\).*window of 5 is larger"):
        graph_from_model(model([conv], {"x": [1, 3, 4, 9]}, ["y"], {"w": weights}))
