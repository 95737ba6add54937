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
    if node.op_type == "ConvTranspose":  # weights: (in, out / group, kernel...)
        sums = _elements(graph, node.inputs[0]) * 2 * math.prod(_shape(graph, node, 1)[1:])
        return sums + _elements(graph, node.outputs[0]) * _has_bias(node)
    if node.op_type in _BY_NODE:
        return _elements(graph, node.outputs[0]) * _BY_NODE[node.op_type](graph, node)
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
    return math.prod(tensor.some_shape) if tensor is not None else 0


def _shape(graph: Graph, node: Node, index: int) -> tuple[int, ...]:
    return graph.tensors[node.inputs[index]].shape


def _has_bias(node: Node) -> int:
    return int(len(node.inputs) > 2 and bool(node.inputs[2]))


def _pool(graph: Graph, node: Node) -> int:
    return math.prod(node.attributes["kernel_shape"])


def _resize(graph: Graph, node: Node) -> int:
    taps = {"linear": 4, "cubic": 16}.get(node.attributes.get("mode", "nearest"), 0)
    return 2 * taps


def _sum(graph: Graph, node: Node) -> int:
    return len(node.inputs) - 1


# Operations per output element, where they follow from the node.
_BY_NODE: dict[str, Callable[[Graph, Node], int]] = {
    # weights: (out, in / group, kernel...)
    "Conv": lambda graph, node: 2 * math.prod(_shape(graph, node, 1)[1:]) + _has_bias(node),
    "Gemm": lambda graph, node: (
        2 * _shape(graph, node, 0)[0 if node.attributes.get("transA") else 1] + _has_bias(node)
    ),
    **dict.fromkeys(("MatMul", "MatMulNBits"), lambda graph, node: 2 * _shape(graph, node, 0)[-1]),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    **dict.fromkeys(("Sum", "Mean"), _sum),
    "LRN": lambda graph, node: 2 * int(node.attributes["size"]) + 4,
}
