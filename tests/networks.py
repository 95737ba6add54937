"""Small networks of floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from heimdall.graph.graph import Graph, graph_from_model

Shapes = Mapping[str, Sequence[int | str]]


def small_model(
    nodes: Sequence[NodeProto],
    inputs: Shapes,
    outputs: Shapes,
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
) -> ModelProto:
    """Inputs and outputs by name and shape."""
    given, made = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends]
        for ends in (inputs.items(), outputs.items())
    )
    stored = [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "net", given, made, stored)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def small_graph(*args: Any, **more: Any) -> Graph:
    """The same as a graph."""
    return graph_from_model(small_model(*args, **more))


def doublings(nodes: int, width: int) -> ModelProto:
    """y = 2 (... 2 (x + 2) + 2 ...): so many nodes; their values are alive one at a time."""
    names = ["x", *(f"v{i}" for i in range(nodes - 1)), "y"]
    steps = [
        helper.make_node("Mul" if i % 2 else "Add", [names[i], "two"], [names[i + 1]], f"op{i}")
        for i in range(nodes)
    ]
    shape, two = [1, width], np.array([2], np.float32)
    return small_model(steps, {"x": shape}, {"y": shape}, {"two": two})


def doubled(x: float, nodes: int) -> float:
    """What that many of them make of it."""
    for i in range(nodes):
        x = x * 2 if i % 2 else x + 2
    return x
