"""An ONNX graph becomes lowered ops, node by node; ``passes`` then make fewer of them."""

from __future__ import annotations

from collections.abc import Collection

from heimdall.engine.checks import check_forced, is_forced
from heimdall.engine.opencl.lowered import Fallback, Lowered, Module
from heimdall.engine.opencl.operators import lower_node
from heimdall.graph.graph import Graph, Node


def lower(graph: Graph, force_fallback: Collection[str] = ()) -> Module:
    """Lower every node.

    Nodes that no kernel covers, and those whose operator type or name is in ``force_fallback``,
    become ``Fallback`` ops.
    """
    check_forced(graph, force_fallback)
    module = Module(
        ops=[],
        shapes={name: tuple(tensor.shape) for name, tensor in graph.tensors.items()},
        constants=dict(graph.constants),
        inputs=tuple(tensor.name for tensor in graph.inputs),
        outputs=tuple(tensor.name for tensor in graph.outputs),
        graph=graph,
    )
    for node in graph.nodes:
        ops = None if is_forced(node, force_fallback) else lower_node(module, node)
        module.ops.extend([_fallback(graph, node)] if ops is None else ops)
    return module


def _fallback(graph: Graph, node: Node) -> Lowered:
    inputs = tuple(name for name in node.inputs if name and name not in graph.constants)
    outputs = tuple(name for name in node.outputs if name)
    return Lowered(Fallback(), tuple(dict.fromkeys(inputs)), outputs, (node.name,))
