"""Weights of a few bits, with a scale for each block of them.

So onnxruntime-genai's builder stores language models (int4): ``MatMulNBits`` for products, which
engines know, ``GatherBlockQuantized`` for tables, which become floats. Layouts are those of
onnxruntime's contributed operators.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.graph.sessions import first_line
from heimdall.graph.values import attributes_of, constant_of, keep_named, node_name
from heimdall.graph.whole import OnlyWholeError

_BYTES = TensorProto.UINT8


def unpack(path: Path, model: onnx.ModelProto) -> None:
    """Make products of packed weights plain: no bias, x as it is, whole blocks, else floats; and
    tables floats. Raises OnlyWholeError, naming the node, for weights of other sizes than it says,
    that are computed, or have an order of their own."""
    graph = model.graph
    if not any(node.op_type in _UNPACKED for node in graph.node):
        return
    stored = _stored(graph)
    nodes: list[onnx.NodeProto] = []
    for index, node in enumerate(graph.node):
        unpacked = _UNPACKED.get(node.op_type)
        try:
            nodes += unpacked(graph, stored, node) if unpacked else [node]
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise OnlyWholeError(
                f"node {node_name(index, node)!r} ({node.op_type}) of {path} has weights that do "
                f"not fit: {first_line(error)}"
            ) from error
    del graph.node[:]
    graph.node.extend(nodes)
    keep_named(graph.initializer, {name for node in nodes for name in node.input})


def _stored(graph: onnx.GraphProto) -> dict[str, TensorProto]:
    """Constants by name; reshaped ones too, as of a table that is also the last product's."""
    stored = {item.name: item for item in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and (item := constant_of(node)) is not None:
            stored[node.output[0]] = item
        elif node.op_type == "Reshape" and all(name in stored for name in node.input):
            array, shape = (numpy_helper.to_array(stored[name]) for name in node.input)
            if array.dtype == np.uint8 and shape.all():
                with contextlib.suppress(ValueError):  # one that does not fit is found later
                    stored[node.output[0]] = numpy_helper.from_array(array.reshape(shape))
    return stored


@dataclass(frozen=True, eq=False)
class Blocks:
    """A matrix by columns, in blocks: ``scales * (values - middles)``."""

    bits: int
    packed: np.ndarray  # uint8 (columns, blocks, bytes)
    scales: np.ndarray  # float32 (columns, blocks)
    middles: np.ndarray  # float32 (columns, blocks)

    @classmethod
    def of(
        cls,
        attributes: Mapping[str, Any],
        data: np.ndarray,
        scales: np.ndarray,
        middles: np.ndarray | None,
    ) -> Blocks:
        """Of the constants of a MatMulNBits. Raises ValueError, or what numpy raises, where they
        do not fit its attributes."""
        rows, columns = attributes["K"], attributes["N"]
        bits, size = attributes.get("bits", 4), attributes["block_size"]
        if bits not in (4, 8) or size < 16 or columns < 1 or rows < 1:
            raise ValueError(f"{bits} bits, blocks of {size}, {rows} x {columns} weights")
        count = -(-rows // size)
        packed = data.reshape(columns, count, size * bits // 8)
        scales = scales.reshape(columns, count)
        if middles is None:
            found: np.ndarray = np.full(scales.shape, 1 << (bits - 1))
        elif middles.dtype == np.uint8:
            found = _unpacked(middles.reshape(columns, -1), bits)[:, :count]
        else:
            found = middles.reshape(columns, count)
        if packed.dtype != np.uint8 or found.shape != scales.shape:
            raise ValueError(f"{packed.dtype}, middles {found.shape} of blocks {scales.shape}")
        return cls(bits, packed, scales.astype(np.float32), found.astype(np.float32))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Columns, blocks, and the size of one."""
        columns, blocks, size = self.packed.shape
        return columns, blocks, size * 8 // self.bits

    @property
    def words(self) -> np.ndarray:
        """The numbers as int32 (columns, words), the first one in the lowest bits."""
        return np.ascontiguousarray(self.packed.reshape(len(self.packed), -1)).view("<i4")

    @property
    def same_middle(self) -> int:
        """The whole number that all blocks have for a middle; -1: they differ."""
        first = float(self.middles.flat[0])
        return int(first) if first.is_integer() and (self.middles == first).all() else -1

    def floats(self, rows: int) -> np.ndarray:
        """The matrix (columns, rows)."""
        values = _unpacked(self.packed, self.bits)
        whole = (values - self.middles[..., None]) * self.scales[..., None]
        return whole.reshape(len(whole), -1)[:, :rows]


class _Node:
    """A node with packed weights: its attributes and inputs by place."""

    def __init__(self, stored: dict[str, TensorProto], node: onnx.NodeProto) -> None:
        self.attributes = attributes_of(node)
        self.names = [*node.input, *[""] * (6 - len(node.input))]
        self._stored = stored

    def kind(self, place: int) -> int:
        return self._stored[self.names[place]].data_type

    def array(self, place: int) -> np.ndarray:
        """A constant input. Raises ValueError where it is none."""
        name = self.names[place]
        if name not in self._stored:
            raise ValueError("they are computed" if name else "they are missing")
        return numpy_helper.to_array(self._stored[name])

    def optional(self, place: int) -> np.ndarray | None:
        """One that may be left out."""
        return self.array(place) if self.names[place] else None


def _product(
    graph: onnx.GraphProto, stored: dict[str, TensorProto], node: onnx.NodeProto
) -> list[onnx.NodeProto]:
    """MatMulNBits: engines know it, in whole blocks and as floats would compute it."""
    packed = _Node(stored, node)
    if packed.names[4]:
        raise ValueError("they have an order of their own (g_idx)")
    stores = packed.array(1), packed.array(2), packed.optional(3)
    blocks, rows = Blocks.of(packed.attributes, *stores), packed.attributes["K"]
    x, bias = packed.names[0], packed.names[5]
    made = f"{node.output[0]}/product" if bias else node.output[0]
    if rows % packed.attributes["block_size"]:
        weights = _store(graph, node, blocks.floats(rows).T)
        product = helper.make_node("MatMul", [x, weights], [made], node.name)
    else:
        product = onnx.NodeProto(name=node.name, op_type=node.op_type, domain=node.domain)
        product.input.extend(packed.names[: 4 if packed.names[3] else 3])
        product.output.append(made)
        plain = [each for each in node.attribute if each.name != "accuracy_level"]  # of x, to ints
        product.attribute.extend(plain)
    if not bias:
        return [product]
    return [product, helper.make_node("Add", [made, bias], [node.output[0]], f"{node.name}/bias")]


def _rows(
    graph: onnx.GraphProto, stored: dict[str, TensorProto], node: onnx.NodeProto
) -> list[onnx.NodeProto]:
    """GatherBlockQuantized: a table whose blocks run along one axis."""
    packed = _Node(stored, node)
    data, scales, zeros = packed.array(0), packed.array(2), packed.optional(3)
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
