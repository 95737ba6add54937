"""Weights of a few bits: the numbers that onnxruntime makes of them."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from onnx import TensorProto, helper

from heimdall.errors import ModelError
from heimdall.graph.graph import load_graph
from heimdall.graph.packed_weights import unpack
from heimdall.graph.whole import WHOLE
from tests.graph.models import model

RNG = np.random.default_rng(11)
BYTE = 256


def run(net, feeds):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(
        net.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)[0]


def product(rows, columns, bits, size, zeros, bias=False, order=False, lines=3):
    blocks = -(-rows // size)
    constants = {
        "w": RNG.integers(0, BYTE, (columns, blocks, size * bits // 8)).astype(np.uint8),
        "scales": RNG.standard_normal((columns, blocks)).astype(np.float32),
    }
    names = ["x", "w", "scales", "", "", ""]
    if zeros == "packed":
        each = -(-blocks * bits // 8)
        constants["zeros"] = RNG.integers(0, BYTE, (columns, each)).astype(np.uint8)
    elif zeros == "floats":
        constants["zeros"] = RNG.uniform(0, 1 << bits, (columns, blocks)).astype(np.float32)
    if zeros:
        names[3] = "zeros"
    if order:
        constants["order"] = np.zeros(blocks * size, np.int32)
        names[4] = "order"
    if bias:
        constants["bias"] = RNG.standard_normal(columns).astype(np.float32)
        names[5] = "bias"
    node = helper.make_node(
        "MatMulNBits", names, ["y"], "pack", domain="com.microsoft",
        K=rows, N=columns, bits=bits, block_size=size,
    )  # fmt: skip
    return model([node], {"x": [lines, rows]}, ["y"], constants)


@settings(max_examples=30)
@given(
    rows=some.integers(1, 100),
    columns=some.integers(1, 20),
    bits=some.sampled_from([4, 8]),
    size=some.sampled_from([16, 32, 64]),
    zeros=some.sampled_from(["", "packed", "floats"]),
    bias=some.booleans(),
)
def test_products(rows, columns, bits, size, zeros, bias):
    if bits == 8 and zeros == "floats":
        zeros = "packed"  # onnxruntime has no others
    net = product(rows, columns, bits, size, zeros, bias)
    feeds = {"x": RNG.standard_normal((3, rows)).astype(np.float32)}
    wanted = run(net, feeds)
    unpack(Path(), net)
    kinds = {node.op_type for node in net.graph.node}
    assert kinds - {"Add"} == {"MatMul" if rows % size else "MatMulNBits"}
    found = run(net, feeds)
    assert np.abs(found - wanted).max() <= 1e-4 * max(np.abs(wanted).max(), 1)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT4, TensorProto.UINT4])
def test_tables(kind, zeros):
    rows, width, size = 10, 80, 32
    blocks = -(-width // size)

    def stored(name, columns):
        if kind == TensorProto.UINT8:
            packed = RNG.integers(0, BYTE, (rows, -(-columns // 2))).astype(np.uint8)
            return onnx.numpy_helper.from_array(packed, name)
        low = -8 if kind == TensorProto.INT4 else 0
        return helper.make_tensor(
            name, kind, (rows, columns), RNG.integers(low, low + 16, rows * columns)
        )

    names = ["w", "i", "scales", *(["zeros"] if zeros else [])]
    node = helper.make_node(
        "GatherBlockQuantized", names, ["y"], "rows", domain="com.microsoft",
        block_size=size, quantize_axis=1, gather_axis=0, bits=4,
    )  # fmt: skip
    scales = RNG.standard_normal((rows, blocks)).astype(np.float32)
    net = model([node], {"i": [2, 3]}, ["y"], {"scales": scales}, opset=21, kind=TensorProto.INT64)
    net.ir_version = 10
    net.graph.initializer.append(stored("w", width))
    if zeros:
        net.graph.initializer.append(stored("zeros", blocks))
    feeds = {"i": RNG.integers(0, rows, (2, 3))}
    wanted = run(net, feeds)
    unpack(Path(), net)
    assert [node.op_type for node in net.graph.node] == ["Gather"]
    np.testing.assert_allclose(run(net, feeds), wanted, atol=1e-6)


def test_a_table_that_is_the_last_product_too():
    """As builders share it: reshaped by a node of its own."""
    packed, size, width = RNG.integers(0, BYTE, (10, 2, 16)).astype(np.uint8), 32, 64
    nodes = [
        helper.make_node("Reshape", ["w", "flat"], ["table"], "flatten"),
        helper.make_node(
            "GatherBlockQuantized", ["table", "i", "scales"], ["y"], "rows",
            domain="com.microsoft", block_size=size, quantize_axis=1, gather_axis=0, bits=4,
        ),
    ]  # fmt: skip
    constants = {
        "w": packed,
        "flat": np.array([10, -1]),
        "scales": RNG.standard_normal((10, width // size)).astype(np.float32),
    }
    net = model(nodes, {"i": [2]}, ["y"], constants, opset=21, kind=TensorProto.INT64)
    feeds = {"i": np.array([7, 2])}
    wanted = run(net, feeds)
    unpack(Path(), net)
    np.testing.assert_allclose(run(net, feeds), wanted, atol=1e-6)


def test_an_order_of_its_own_runs_whole_on_the_cpu(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "ordered.onnx"
    onnx.save(product(64, 8, 4, 32, "", order=True), path)
    (node,) = load_graph(path).nodes
    assert node.op_type == WHOLE
    assert "MatMulNBits" in caplog.text


def test_a_file_keeps_them(tmp_path):
    path = tmp_path / "packed.onnx"
    onnx.save(product(64, 8, 4, 32, "packed"), path)
    (node,) = load_graph(path).nodes
    assert node.op_type == "MatMulNBits"


@pytest.mark.parametrize(
    ("attribute", "value"), [("K", -3), ("N", 0), ("N", 9), ("block_size", 0), ("bits", 3)]
)
def test_weights_of_other_sizes_are_refused(tmp_path, attribute, value):
    net = product(64, 8, 4, 32, "packed")
    (changed,) = (each for each in net.graph.node[0].attribute if each.name == attribute)
    changed.i = value
    path = tmp_path / "wrong.onnx"
    onnx.save(net, path)
    with pytest.raises(ModelError, match=r"'pack' .* do not fit"):
        load_graph(path)


def test_a_product_without_weights_is_refused(tmp_path):
    node = helper.make_node("MatMulNBits", ["x"], ["y"], "bare", domain="com.microsoft", K=4, N=4)
    path = tmp_path / "bare.onnx"
    onnx.save(model([node], {"x": [3, 4]}, ["y"]), path)
    with pytest.raises(ModelError, match=r"'bare' \(MatMulNBits\) .* do not fit: they are missing"):
        load_graph(path)
