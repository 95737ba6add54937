"""NaN and infinity go through every operator as in onnxruntime, so that a broken network shows.

The cases are ONNX's own (``test_onnx_nodes``), each float input broken in turn. Where the result is
not onnxruntime's, it must be that of ONNX's reference.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.operators import TABLE
from heimdall.errors import ModelError
from heimdall.graph.graph import graph_from_model
from tests.engine.opencl.test_onnx_nodes import cases

VALUES = (np.nan, np.inf, -np.inf)
# onnxruntime keeps NaN only where it lies first (ReduceMax) or last (MaxPool), by vectors.
EXTREMES = {"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"}
# Inputs that are weights in practice: padding is left out here, and not multiplied by them.
WEIGHTS = {"Conv": (1, 2), "ConvTranspose": (1, 2)}
# Infinity or NaN, both broken: of inf * 0 that one side computes and the other leaves out.
EITHER = {"Gelu", "Resize"}
LEFT = {
    "GridSample": "as PyTorch does it: test_grid_sample",
    "Hardmax": "the place of the largest number, of which NaN is none",
    "Attention": "a query that sees only a key of -inf: onnxruntime takes masked ones instead",
}


OPERATORS = sorted(name for name in TABLE if ":" not in name and name not in LEFT)


def broken(array: np.ndarray, value: float, seed: int) -> np.ndarray:
    """With that value in one place, and in one of twelve."""
    random, made = np.random.default_rng(seed), array.copy()
    made.reshape(-1)[random.random(array.size) < 1 / 12] = value
    made.reshape(-1)[random.integers(array.size)] = value
    return made


def differs(op_type: str, found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    same = np.isclose(found, wanted, rtol=1e-3, atol=1e-5, equal_nan=True)
    if op_type in EXTREMES:
        same |= np.isnan(found)  # exactly where: tested below
    if op_type in EITHER:
        same |= ~np.isfinite(found) & ~np.isfinite(wanted)
    return ~same


@pytest.mark.parametrize(
    "traits",
    [
        pytest.param(None, marks=pytest.mark.long, id="this device"),
        pytest.param(Traits("gpu", 4), id="a GPU"),
    ],
)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_broken_inputs_show_as_in_onnxruntime(engine_for, shared, traits, op_type):
    for case in cases():
        if case.op_type != op_type:
            continue
        try:
            graph = graph_from_model(case.model)
        except ModelError:
            continue
        network = engine_for(traits).load(graph)
        floats = [name for name, each in case.inputs.items() if each.dtype == np.float32]
        weights = [case.model.graph.node[0].input[i] for i in WEIGHTS.get(op_type, ())
                   if i < len(case.model.graph.node[0].input)]  # fmt: skip
        own = all(op.fallback for op in network.ops)  # onnxruntime's anyhow
        for name in () if own else set(floats) - set(weights):
            for value in VALUES:
                inputs = dict(case.inputs)
                inputs[name] = broken(inputs[name], value, seed=1)
                found = shared.run(network, network.new_state(), inputs)
                wanted = shared.reference(graph, inputs)
                for output, array in found.items():
                    wrong = differs(op_type, array, wanted[output])
                    if wrong.any():
                        other = by_reference(case.model, inputs, output)
                        wrong &= differs(op_type, array, other)
                    where = (case.name, name, value, array[wrong], wanted[output][wrong])
                    assert not wrong.any(), where
        network.close()


def by_reference(model: onnx.ModelProto, inputs, output) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (made,) = ReferenceEvaluator(model).run([output], inputs)
    return np.asarray(made)


# --- where NaN and -inf are in a window, or in what is reduced: PyTorch's and numpy's answer ---


POOLS = [
    ("MaxPool", (1, 5, 7), {"kernel_shape": [7]}),
    ("MaxPool", (1, 20, 3, 3), {"kernel_shape": [3, 3]}),
    ("MaxPool", (1, 20, 4, 3), {"kernel_shape": [4, 3]}),
    ("MaxPool", (2, 3, 3, 3), {"kernel_shape": [3, 3]}),
    ("MaxPool", (1, 3, 3, 3), {"kernel_shape": [2, 2], "dilations": [2, 2]}),
    ("MaxPool", (1, 3, 2, 2, 2), {"kernel_shape": [2, 2, 2]}),
    ("GlobalMaxPool", (1, 20, 5, 4), {}),
    ("GlobalMaxPool", (1, 20, 40, 30), {}),
    ("ReduceMax", (1, 20, 5, 4), {"axes": [2, 3]}),
    ("ReduceMax", (3, 21), {"axes": [1]}),
    ("ReduceMax", (7, 5), {"axes": [0]}),
    ("ReduceMin", (3, 21), {"axes": [1]}),
    ("ReduceMin", (1, 20, 5, 4), {"axes": [1, 2, 3]}),
    ("ReduceProd", (3, 21), {"axes": [1]}),
]


REDUCTIONS: dict[str, Any] = {"ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod}


@pytest.mark.parametrize(("op", "shape", "extra"), POOLS)
def test_nan_anywhere_is_the_result_and_infinity_stays(processor, shared, build, op, shape, extra):
    network = processor.load(build([helper.make_node(op, ["x"], ["y"], **extra)], {"x": shape}))
    count = int(np.prod(shape[2:] if len(shape) > 2 else shape))
    state = network.new_state()
    dilated = "dilations" in extra
    for place in range(count):
        x = np.ones(shape, np.float32)
        flat = x.reshape(-1, count) if len(shape) > 2 else x.reshape(1, -1)
        flat[:, place] = np.nan
        found = shared.run(network, state, {"x": x})["y"]
        if op in REDUCTIONS:
            wanted = REDUCTIONS[op](x, tuple(extra["axes"]), keepdims=True)
            assert np.array_equal(found, wanted, True)
        elif not dilated or place in (0, 2, 6, 8):
            assert np.isnan(found).all(), place
        else:
            assert (found == 1).all(), place
    for value in (np.inf, -np.inf):
        found = shared.run(network, state, {"x": np.full(shape, value, np.float32)})["y"]
        if op != "ReduceProd":
            assert (found == value).all()
    network.close()


@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize("shape", [(1, 20, 5, 7), (3, 7)])
@pytest.mark.parametrize("constant", [False, True])
def test_nan_of_either_tensor_is_the_larger_and_the_smaller_one(
    processor, shared, build, op, shape, constant
):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
    a[random.random(shape) < 0.2], b[random.random(shape) < 0.2] = np.nan, np.nan
    fixed = {"b": b} if constant else {}
    inputs = {"a": a} if constant else {"a": a, "b": b}
    graph = build([helper.make_node(op, ["a", "b"], ["y"])], dict.fromkeys(inputs, shape), fixed)
    network = processor.load(graph)
    found = shared.run(network, network.new_state(), inputs)["y"]
    wanted = {"Max": np.maximum, "Min": np.minimum}[op](a, b)
    assert np.array_equal(found, wanted, equal_nan=True)
    network.close()


def test_root_mean_squares_of_a_line_with_infinity_leave_the_others_at_zero(
    processor, shared, build
):
    """The lanes that a line's last vector has in common with the one before do not count."""
    x = np.ones((2, 19), np.float32)
    x[0, 10] = np.inf
    nodes = [helper.make_node("RMSNormalization", ["x", "s"], ["y"])]
    graph = build(nodes, {"x": x.shape}, {"s": np.ones(19, np.float32)}, opset=23)
    network = processor.load(graph)
    found = shared.run(network, network.new_state(), {"x": x})["y"]
    assert np.isnan(found[0, 10])
    assert (np.delete(found[0], 10) == 0).all()
    assert found[1] == pytest.approx(1, abs=1e-4)
    network.close()
