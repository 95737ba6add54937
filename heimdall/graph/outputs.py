"""Which outputs a model file has."""

from __future__ import annotations

from collections.abc import Sequence

import onnx


def keep_outputs(model: onnx.ModelProto, outputs: Sequence[str]) -> None:
    """Leave out the other outputs, and what only they need."""
    graph, needed, nodes = model.graph, set(outputs), list[onnx.NodeProto]()
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            nodes.append(node)
    kept = {
        "node": nodes[::-1],
        "initializer": [item for item in graph.initializer if item.name in needed],
        "output": [value for value in graph.output if value.name in outputs],
    }
    for name, values in kept.items():
        graph.ClearField(name)
        getattr(graph, name).extend(values)
