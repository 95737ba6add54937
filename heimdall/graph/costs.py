"""What one ONNX node costs at least: arithmetic and memory traffic, from its shapes alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from heimdall.graph.graph import Graph, Node

# Ops that a good engine does without touching the data.
_FREE = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"}
_FREE |= {"Shape", "Constant", "ConstantOfShape"}
# Ops that only move data.
_MOVES = {"Transpose", "Concat", "Split", "Slice", "Pad", "Gather", "GatherElements", "GatherND"}
_MOVES |= {"Cast", "CastLike", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Where"}
_MOVES |= {"ReverseSequence", "ScatterND", "ScatterElements"}
# Passes over the data that an op needs: operations per input element.
_PER_INPUT = {
    "Softmax": 5,
    "LogSoftmax": 5,
    "InstanceNormalization": 6,
    "LayerNormalization": 6,
    "GroupNormalization": 6,
    "LpNormalization": 3,
    "GlobalAveragePool": 1,
    "GlobalMaxPool": 1,
}
# Operations per output element, where it is not one.
_PER_OUTPUT = {"BatchNormalization": 2, "PRelu": 2, "LeakyRelu": 2, "HardSigmoid": 4}
_PER_OUTPUT |= {"HardSwish": 5, "Sigmoid": 4, "Tanh": 5, "Clip": 2, "Elu": 4, "Gelu": 8}


def node_flops(graph: Graph, node: Node) -> int:
    """Floating-point operations of one node; a multiply-add counts as two, as in Table 3.

    Pooling and elementwise ops count comparisons and additions as one each.
    """
    count = _COUNTERS.get(node.op_type)
    if count is not None:
        return count(graph, node)
    if node.op_type in _FREE or node.op_type in _MOVES:
        return 0
    if node.op_type.startswith(("Reduce", "Arg")):
        return _elements(graph, node.inputs[0])
    if node.op_type in _PER_INPUT:
        return _PER_INPUT[node.op_type] * _elements(graph, node.inputs[0])
    outputs = sum(_elements(graph, name) for name in node.outputs if name)
    return _PER_OUTPUT.get(node.op_type, 1) * outputs


def node_bytes(graph: Graph, node: Node) -> int:
    """Bytes that one node must read and write at least once: inputs, weights and outputs."""
    if node.op_type in _FREE:
        return 0
    names = dict.fromkeys(name for name in (*node.inputs, *node.outputs) if name)
    return sum(graph.tensors[name].bytes for name in names if name in graph.tensors)


def _elements(graph: Graph, name: str) -> int:
    tensor = graph.tensors.get(name)
    return math.prod(tensor.shape) if tensor is not None else 0


def _conv(graph: Graph, node: Node) -> int:
    weights = graph.tensors[node.inputs[1]].shape  # (out, in / group, kernel...)
    outputs = _elements(graph, node.outputs[0])
    return outputs * (2 * math.prod(weights[1:]) + _has_bias(node))


def _conv_transpose(graph: Graph, node: Node) -> int:
    weights = graph.tensors[node.inputs[1]].shape  # (in, out / group, kernel...)
    bias = _elements(graph, node.outputs[0]) * _has_bias(node)
    return _elements(graph, node.inputs[0]) * 2 * math.prod(weights[1:]) + bias


def _gemm(graph: Graph, node: Node) -> int:
    rows = graph.tensors[node.inputs[0]].shape
    inner = rows[0] if node.attributes.get("transA") else rows[1]
    return _elements(graph, node.outputs[0]) * (2 * inner + _has_bias(node))


def _matmul(graph: Graph, node: Node) -> int:
    return _elements(graph, node.outputs[0]) * 2 * graph.tensors[node.inputs[0]].shape[-1]


def _pool(graph: Graph, node: Node) -> int:
    return _elements(graph, node.outputs[0]) * math.prod(node.attributes["kernel_shape"])


def _resize(graph: Graph, node: Node) -> int:
    mode = node.attributes.get("mode", "nearest")
    taps = {"linear": 4, "cubic": 16}.get(mode, 0)
    return _elements(graph, node.outputs[0]) * 2 * taps


def _sum(graph: Graph, node: Node) -> int:
    return _elements(graph, node.outputs[0]) * (len(node.inputs) - 1)


def _lrn(graph: Graph, node: Node) -> int:
    return _elements(graph, node.outputs[0]) * (2 * int(node.attributes["size"]) + 4)


def _has_bias(node: Node) -> int:
    return int(len(node.inputs) > 2 and bool(node.inputs[2]))


_COUNTERS: dict[str, Callable[[Graph, Node], int]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "LpPool": _pool,
    "Resize": _resize,
    "Upsample": _resize,
    "Sum": _sum,
    "Mean": _sum,
    "LRN": _lrn,
}
