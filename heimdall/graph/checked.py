"""ONNX's official checker, for what onnxruntime reads, too: it is less strict.

Put right: nodes in no order, a graph without a name, constants that are no inputs in IR version 3.
Let through: inputs and outputs without a shape.
"""

from __future__ import annotations

from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

import onnx

from heimdall.graph.control_flow import nodes_of


def put_right(model: onnx.ModelProto) -> None:
    """What the checker is strict about, in place."""
    model.ir_version = max(model.ir_version, 4)
    model.graph.name = model.graph.name or "net"
    with suppress(CycleError):  # the checker names it
        _sort(model.graph)


def check(model: onnx.ModelProto) -> None:
    """Raise the checker's error for what is no valid model."""
    values = [*model.graph.input, *model.graph.output]
    kinds = [value.type.tensor_type for value in values if value.type.HasField("tensor_type")]
    unshaped = [kind for kind in kinds if not kind.HasField("shape")]
    for kind in unshaped:
        kind.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    finally:
        for kind in unshaped:
            kind.ClearField("shape")


def _sort(graph: onnx.GraphProto) -> None:
    """Nodes after those that they need. What is in order stays as it is."""
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    needed: dict[int, set[int]] = {}
    for index, node in enumerate(graph.node):
        inner = [
            each for item in node.attribute for g in (item.g, *item.graphs) for each in nodes_of(g)
        ]
        names = [*node.input, *(name for _, each in inner for name in each.input)]
        needed[index] = {makers[name] for name in names if name in makers} - {index}
    if all(before < index for index, others in needed.items() for before in others):
        return
    nodes = list(graph.node)
    order = list(TopologicalSorter(needed).static_order())
    del graph.node[:]
    graph.node.extend(nodes[index] for index in order)
