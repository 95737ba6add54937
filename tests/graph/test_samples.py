"""Random inputs for measuring and checking."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from onnx import TensorProto

from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.graph.graph import Graph, Tensor, graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs, zero_inputs
from heimdall.inspection.checking import bundled_shapes
from heimdall.system import paths
from tests.graph.decoders import decoder
from tests.graph.models import model, node


def with_inputs(*shapes, dtype=np.float32) -> Graph:
    """A graph of which only the inputs matter."""
    inputs = [Tensor(f"x{i}", shape, np.dtype(dtype)) for i, shape in enumerate(shapes)]
    return cast(Graph, SimpleNamespace(inputs=inputs, nodes=(), constants={}))


def test_same_seed_gives_the_same_arrays_and_another_seed_others():
    graph = with_inputs((1, 3, 20, 30), (26,))
    one, same, other = (sample_inputs(graph, seed) for seed in (1, 1, 2))
    for name in ("x0", "x1"):
        np.testing.assert_array_equal(one[name], same[name])
        assert not np.array_equal(one[name], other[name])


@pytest.mark.parametrize("shape", [(1, 3, 33, 20), (1, 33, 20, 3), (2, 16, 7, 7), (1, 1, 1, 1), ()])
def test_arrays_have_the_declared_shape_and_type_and_stay_in_range(shape):
    array = sample_inputs(with_inputs(shape))["x0"]
    assert array.shape == shape
    assert array.dtype == np.float32
    assert -1 <= array.min() <= array.max() <= 1


def test_integer_pictures_use_the_range_of_bytes():
    array = sample_inputs(with_inputs((1, 64, 64, 3), dtype=np.int32))["x0"]
    assert array.dtype == np.int32
    assert 0 <= array.min() < 60
    assert 200 < array.max() <= 255


def test_vectors_are_weights_that_sum_to_one():
    weights = sample_inputs(with_inputs((26,)))["x0"]
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_lone_number_is_no_end_of_what_a_threshold_may_be(shape):
    for seed in range(9):
        assert 0 < sample_inputs(with_inputs(shape), seed)["x0"].item() < 1


def test_pictures_make_detectors_and_masks_respond():
    for file in ("seg_selfie_256.onnx", "ppocrv4_det_dynamic.onnx"):
        graph = load_graph(paths.ASSETS / "models" / file, bundled_shapes().get(file))
        network = OnnxRuntimeEngine().load(graph)
        state = network.new_state()
        network.write(state, sample_inputs(graph))
        network.run(state, 0, len(network.ops))
        (values,) = network.read(state).values()
        assert values.max() > 0.3


def test_inputs_of_one_network_differ():
    samples = sample_inputs(with_inputs((1, 3, 8, 8), (1, 3, 8, 8)))
    assert not np.array_equal(samples["x0"], samples["x1"])


def test_what_picks_rows_of_a_table_picks_some_that_it_has():
    table = model(
        [node("Gather", ["lines", "ids"], ["y"])],
        {"ids": [1, 64]},
        ["y"],
        {"lines": np.zeros((7, 3), np.float32)},
        kind=TensorProto.INT64,
    )
    found = sample_inputs(graph_from_model(table))["ids"]
    assert found.min() >= 0
    assert found.max() < 7


@pytest.mark.parametrize("inputs_of", [sample_inputs, zero_inputs])
def test_a_cache_is_full(inputs_of):
    graph = load_graph(decoder("optimum"), {"input_ids": (1, 4), "context": 32})
    found = inputs_of(graph)
    assert (found["seqlens_k"], found["total_sequence_length"]) == (31, 32)
    assert {name: each.shape for name, each in found.items()} == {
        each.name: each.shape for each in graph.inputs
    }


def table_behind(nodes, constants=None, kind=TensorProto.INT64, index="i"):
    """Rows of a table of eleven, by what nodes make of ``ids``."""
    made = model(
        [*nodes, node("Gather", ["lines", index], ["y"], "rows")],
        {"ids": [1, 6]},
        ["y"],
        {"lines": np.arange(33, dtype=np.float32).reshape(11, 3), **(constants or {})},
        kind=kind,
        opset=17,
    )
    return graph_from_model(made)


ONE, TEN, HUNDRED = {"c": np.int64(1)}, {"c": np.int64(10)}, {"c": np.int64(100)}
BEHIND = {
    "offset": ([node("Sub", ["ids", "c"], ["i"])], ONE),
    "far offset": ([node("Sub", ["ids", "c"], ["i"])], HUNDRED),
    "other offset": ([node("Add", ["ids", "c"], ["i"])], {"c": np.int64(-300)}),
    "from the end": ([node("Sub", ["c", "ids"], ["i"])], TEN),
    "factor": ([node("Mul", ["ids", "c"], ["i"])], {"c": np.int64(3)}),
    "least": ([node("Max", ["ids", "c"], ["i"])], ONE),
    "clip": ([node("Clip", ["ids", "a", "b"], ["i"])], {"a": np.int64(1), "b": np.int64(99)}),
    "cast": ([node("Cast", ["ids"], ["i"], to=TensorProto.INT32)], {}),
    "mod": ([node("Mod", ["ids", "c"], ["i"])], TEN),
    "where": (
        [node("Less", ["ids", "z"], ["n"]), node("Where", ["n", "z", "ids"], ["i"])],
        {"z": np.int64(0)},
    ),
    "twice": (
        [node("Add", ["ids", "c"], ["j"]), node("Unsqueeze", ["j", "axis"], ["i"])],
        {"c": np.int64(-7), "axis": np.array([0])},
    ),
    "itself": ([node("Identity", ["ids"], ["i"])], {}),
}


@pytest.mark.parametrize("inputs_of", [sample_inputs, zero_inputs])
@pytest.mark.parametrize("what", BEHIND)
def test_simple_ops_before_a_table_are_followed(what, inputs_of):
    graph = table_behind(*BEHIND[what])
    network = OnnxRuntimeEngine().load(graph)
    inputs = inputs_of(graph)
    assert network.infer(network.new_state(), inputs)["y"].size  # onnxruntime refuses other rows
    if inputs_of is sample_inputs:
        assert len(set(inputs["ids"].flat)) > 1


def test_a_table_that_floats_lead_to():
    nodes = [node("Mul", ["ids", "c"], ["f"]), node("Cast", ["f"], ["i"], to=TensorProto.INT64)]
    graph = table_behind(nodes, {"c": np.float32(100)}, kind=TensorProto.FLOAT)
    network = OnnxRuntimeEngine().load(graph)
    assert network.infer(network.new_state(), sample_inputs(graph))["y"].size


def test_integers_that_divide_are_not_zero():
    made = model(
        [node("Div", ["x", "by"], ["q"]), node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)],
        {"x": [4], "by": [4]},
        ["y"],
        kind=TensorProto.INT64,
    )
    for inputs_of in (sample_inputs, zero_inputs):
        assert inputs_of(graph_from_model(made))["by"].all()


def test_where_no_samples_fit_it_says_how_to_give_them(caplog):
    nodes = [node("Mul", ["ids", "zero"], ["z"]), node("Add", ["z", "far"], ["i"])]
    graph = table_behind(nodes, {"zero": np.int64(0), "far": np.int64(99)})
    sample_inputs(graph)
    assert "'ids'" in caplog.text
    assert "shapes={'ids': 1}" in caplog.text
