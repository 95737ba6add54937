"""Attention and what it is made of, against onnxruntime, at sizes that networks have."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl.attend import Attend

TOLERANCE = 1e-4


def node(op, inputs, output="y", **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


@pytest.fixture
def agrees(processor, build, shared):
    """agrees(nodes, shapes, constants={}, spread=1): whether the nodes, which read "a" and "b", are
    right on inputs that kernels have made; returns the network."""

    def compare(nodes, shapes, constants=None, spread=1.0):
        before = [node("Neg", f"x{name}", name) for name in shapes]
        graph = build([*before, *nodes], {f"x{n}": s for n, s in shapes.items()}, constants)
        random = np.random.default_rng(0)
        inputs = {
            f"x{name}": (spread * random.standard_normal(shape)).astype(np.float32)
            for name, shape in shapes.items()
        }
        network = processor.load(graph)
        assert not any(op.fallback for op in network.ops)
        found = shared.run(network, network.new_state(), inputs)
        wanted = shared.reference(graph, inputs)
        assert shared.relative_error(found, wanted) <= TOLERANCE
        return network

    return compare


SOFTMAX = [
    ((2, 3, 1500), -1),
    ((7, 1499), -1),
    ((3, 16), -1),
    ((5, 17), -1),
    ((9, 7), -1),
    ((4, 1), -1),
    ((2, 21, 48), 1),
    ((2, 5, 7, 3), 1),
    ((1, 30, 4, 6), 1),
    ((11, 64), 0),
]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(("shape", "axis"), SOFTMAX)
def test_softmax_of_rows_and_of_columns(agrees, op, shape, axis):
    agrees([node(op, "a", axis=axis)], {"a": shape})


@pytest.mark.parametrize("size", [1500, 33, 5])
def test_softmax_of_large_values_does_not_overflow(agrees, size):
    agrees([node("Softmax", "a", axis=-1)], {"a": (4, size)}, spread=500.0)


@pytest.mark.parametrize("size", [1500, 37, 16, 6])
def test_softmax_leaves_nothing_where_a_mask_is_infinite(agrees, size):
    mask = np.where(np.arange(size) > np.arange(6)[:, None], -np.inf, 0.0).astype(np.float32)
    nodes = [node("Add", "a m", "s"), node("Softmax", "s", axis=-1)]
    agrees(nodes, {"a": (3, 6, size)}, {"m": mask})


PRODUCTS = [
    ((6, 40, 64), (6, 64, 150)),
    ((2, 3, 7, 5), (2, 3, 5, 9)),
    ((1, 12, 1, 64), (1, 12, 64, 33)),
    ((4, 33, 17), (4, 17, 16)),
    ((5, 1), (1, 6)),
    ((1, 3, 9, 4), (1, 1, 4, 70)),
    ((2, 1, 9, 4), (1, 3, 4, 5)),
]


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
def test_products_of_batches(agrees, a, b):
    agrees([node("MatMul", "a b")], {"a": a, "b": b})


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 2, 3, 1), (1, 0, 2, 3), (3, 1, 0, 2)])
@pytest.mark.parametrize("second", [False, True])
def test_a_transposed_operand(agrees, order, second):
    sides = [0, 0, 0, 0]
    for axis, size in zip(order, (2, 3, 6, 6), strict=True):
        sides[axis] = size
    nodes = [node("Transpose", "a", "t", perm=order), node("MatMul", "b t" if second else "t b")]
    agrees(nodes, {"a": sides, "b": (2, 3, 6, 6)})


def test_a_scaled_product_is_one_op(agrees):
    nodes = [node("MatMul", "a b", "p"), node("Div", "p s")]
    shapes = {"a": (3, 10, 20), "b": (3, 20, 30)}
    network = agrees(nodes, shapes, {"s": np.float32(8)})
    assert len(network.ops) == 3  # two that negate


def test_a_constant_matrix_on_either_side(agrees):
    random = np.random.default_rng(1)
    constant = random.standard_normal((3, 8, 8)).astype(np.float32)
    for order in ("a c", "c a"):
        agrees([node("MatMul", order)], {"a": (3, 8, 8)}, {"c": constant})


def attention(*between):
    """Queries, keys and values of 1 x tokens x heads x size."""
    return [
        node("Transpose", "a", "q", perm=[0, 2, 1, 3]),
        node("Transpose", "b", "k", perm=[0, 2, 3, 1]),
        node("Transpose", "c", "v", perm=[0, 2, 1, 3]),
        node("MatMul", "q k", "p"),
        node("Mul", "p s", "scaled"),
        *between,
        node("Softmax", "masked" if between else "scaled", "shares", axis=-1),
        node("MatMul", "shares v"),
    ]


SIZES = [  # tokens asked for, tokens, heads, size
    (5, 7, 2, 4),
    (33, 33, 3, 16),
    (1, 50, 4, 8),
    (130, 700, 7, 8),  # several heads at a time
    (401, 1500, 1, 12),  # some rows of a head at a time
]


@pytest.mark.parametrize(("rows", "keys", "heads", "size"), SIZES)
def test_attention_is_one_op_and_right(agrees, rows, keys, heads, size):
    shapes = {"a": (1, rows, heads, size), "b": (1, keys, heads, size), "c": (1, keys, heads, size)}
    network = agrees(attention(), shapes, {"s": np.float32(size**-0.5)})
    assert sum(isinstance(op.spec, Attend) for op in network._module.ops) == 1


def test_masked_attention(agrees):
    mask = np.where(np.arange(40) > np.arange(40)[:, None], -np.inf, 0.0).astype(np.float32)
    shapes = dict.fromkeys("abc", (1, 40, 2, 8))
    agrees(attention(node("Add", "scaled m", "masked")), shapes, {"s": np.float32(0.3), "m": mask})


def test_shares_that_are_read_elsewhere_are_made(agrees, build):
    nodes = [*attention()[:-1], node("MatMul", "shares v", "z"), node("MatMul", "shares z")]
    shapes = dict.fromkeys("abc", (1, 9, 2, 9))
    network = agrees(nodes, shapes, {"s": np.float32(0.3)})
    assert not any(isinstance(op.spec, Attend) for op in network._module.ops)


NORMS = [
    ((2, 9, 384), -1),
    ((5, 17), -1),
    ((7, 5), 1),
    ((3, 4, 33), 1),
    ((4, 1), -1),
    ((130, 50), -1),
]


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(("shape", "axis"), NORMS)
def test_layer_normalisation(agrees, shape, axis, shifted):
    random = np.random.default_rng(2)
    ends = random.standard_normal((2, *shape[axis:])).astype(np.float32)
    nodes = [node("LayerNormalization", "a s t" if shifted else "a s", axis=axis)]
    agrees(nodes, {"a": shape}, {"s": ends[0]} | ({"t": ends[1]} if shifted else {}), spread=3.0)


def test_the_variance_of_a_row_with_a_large_mean(agrees):
    nodes = [node("Add", "a m", "b"), node("LayerNormalization", "b s", axis=-1)]
    agrees(nodes, {"a": (6, 37)}, {"m": np.float32(100), "s": np.ones(37, np.float32)})
