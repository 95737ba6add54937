"""Weights of a few bits, with a scale for each block of them, become floats.

So onnxruntime-genai's builder stores language models (int4): ``MatMulNBits`` for products,
``GatherBlockQuantized`` for tables. As floats they take up to eight times the memory, and are what
any engine computes with. Layouts are those of onnxruntime's contributed operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph.sessions import first_line
from heimdall.graph.values import attributes_of, node_name

_NIBBLES = {TensorProto.INT4, TensorProto.UINT4}
_BYTES = TensorProto.UINT8


def unpack(path: Path, model: onnx.ModelProto) -> None:
    """Replace the nodes whose weights are packed constants, with orders of their own excepted.
    Raises ModelError, naming the node, for weights of other sizes than it says."""
    graph = model.graph
    if not any(node.op_type in _UNPACKED for node in graph.node):
        return
    stored = {item.name: item for item in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for index, node in enumerate(graph.node):
        unpacked = _UNPACKED.get(node.op_type)
        try:
            nodes += (unpacked and unpacked(graph, stored, node)) or [node]
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ModelError(
                f"node {node_name(index, node)!r} ({node.op_type}) of {path} has weights that do "
                f"not fit its attributes: {first_line(error)}"
            ) from error
    del graph.node[:]
    graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    kept = [item for item in graph.initializer if item.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


class _Node:
    """A node with packed weights: its attributes and inputs by place."""

    def __init__(self, stored: dict[str, TensorProto], node: onnx.NodeProto) -> None:
        self.attributes = attributes_of(node)
        self.names = [*node.input, *[""] * (6 - len(node.input))]
        self._stored = stored

    def known(self, *places: int) -> bool:
        """Are these inputs constants, or not there?"""
        return all(not self.names[each] or self.names[each] in self._stored for each in places)

    def kind(self, place: int) -> int:
        return self._stored[self.names[place]].data_type

    def array(self, place: int) -> np.ndarray | None:
        name = self.names[place]
        return numpy_helper.to_array(self._stored[name]) if name else None


def _product(
    graph: onnx.GraphProto, stored: dict[str, TensorProto], node: onnx.NodeProto
) -> list[onnx.NodeProto]:
    """MatMulNBits: columns of the weights are rows of packed bytes, block by block."""
    packed = _Node(stored, node)
    if packed.names[4] or not packed.known(1, 2, 3):  # groups in an order of their own
        return []
    rows, columns = packed.attributes["K"], packed.attributes["N"]
    bits, size = packed.attributes.get("bits", 4), packed.attributes["block_size"]
    data, scales, zeros = map(packed.array, (1, 2, 3))
    assert data is not None
    assert scales is not None
    values = _unpacked(data.reshape(columns, -1, size * bits // 8), bits)
    scales = scales.reshape(columns, -1, 1)
    if zeros is None:
        middle: np.ndarray = np.array(1 << (bits - 1), scales.dtype)
    elif packed.kind(3) == _BYTES:
        middle = _unpacked(zeros.reshape(columns, -1), bits)[:, : scales.shape[1], None]
    else:
        middle = zeros.reshape(columns, -1, 1)
    weights = (values.astype(scales.dtype) - middle) * scales
    name = _store(graph, node, weights.reshape(columns, -1)[:, :rows].T)
    return list(_multiplied(node, name, packed.names[5]))


def _multiplied(node: onnx.NodeProto, weights: str, bias: str) -> Iterator[onnx.NodeProto]:
    made = f"{node.output[0]}/product" if bias else node.output[0]
    yield helper.make_node("MatMul", [node.input[0], weights], [made], node.name)
    if bias:
        yield helper.make_node("Add", [made, bias], [node.output[0]], f"{node.name}/bias")


def _rows(
    graph: onnx.GraphProto, stored: dict[str, TensorProto], node: onnx.NodeProto
) -> list[onnx.NodeProto]:
    """GatherBlockQuantized: a table whose blocks run along one axis."""
    packed = _Node(stored, node)
    data, scales, zeros = (packed.array(each) if packed.known(each) else None for each in (0, 2, 3))
    if data is None or scales is None or (packed.names[3] and zeros is None):
        return []
    get = packed.attributes.get
    bits, halves = get("bits", 4), packed.kind(0) == _BYTES
    values = _unpacked(data, bits) if halves else data
    axis = get("quantize_axis", 1) % values.ndim
    middle = np.array(1 << (bits - 1) if halves else 0, scales.dtype)
    if zeros is not None:
        middle = (_unpacked(zeros, bits) if halves else zeros).astype(scales.dtype)
        middle = middle[tuple(map(slice, scales.shape))]
    size, length = get("block_size", 128), values.shape[axis]
    scales, middle = (_spread(each, size, axis, length) for each in (scales, middle))
    table = _store(graph, node, (values.astype(scales.dtype) - middle) * scales)
    return [
        helper.make_node(
            "Gather", [table, node.input[1]], node.output, node.name, axis=get("gather_axis", 0)
        )
    ]


def _spread(numbers: np.ndarray, size: int, axis: int, length: int) -> np.ndarray:
    """A number of each block, for each of its members."""
    if not numbers.ndim:
        return numbers
    return np.take(numbers, np.arange(length) // size, axis)


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """The numbers in bytes, along the last axis; the lowest bits come first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1)


def _store(graph: onnx.GraphProto, node: onnx.NodeProto, weights: np.ndarray) -> str:
    name = f"{node.output[0]}/weights"
    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(weights), name))
    return name


_UNPACKED = {"MatMulNBits": _product, "GatherBlockQuantized": _rows}
