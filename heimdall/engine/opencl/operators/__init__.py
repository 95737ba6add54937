"""ONNX operators to lowered ops, one function an operator.

A function returns None for what the kernels do not cover (another rank, mode or type): that
node becomes a fallback op. Shapes are those of the graph, which are all fixed.
"""

from __future__ import annotations

from heimdall.engine.opencl.lowered import Lowered, Module
from heimdall.engine.opencl.operators import elementwise, layers, movement  # noqa: F401  (register)
from heimdall.engine.opencl.operators.context import FLOAT, TABLE, Context
from heimdall.graph.graph import Graph, Node


def lower_node(module: Module, node: Node) -> list[Lowered] | None:
    """The lowered ops of a node, or None where it must fall back to the CPU.

    New tensors and constants are added to ``module``.
    """
    lowering = None if node.domain else TABLE.get(node.op_type)
    if lowering is None or not _all_float(module.graph, node):
        return None
    return lowering(Context(module, node))


def _all_float(graph: Graph, node: Node) -> bool:
    outputs = [name for name in node.outputs if name]
    if node.op_type == "MaxPool":
        outputs = outputs[:1]
    inputs = [name for name in node.inputs if name and name not in graph.constants]
    if node.op_type == "Cast":
        inputs = []
    return bool(outputs) and all(
        name in graph.tensors and graph.tensors[name].dtype == FLOAT for name in inputs + outputs
    )
