"""ONNX operators to lowered ops, one function an operator.

A function returns None for what the kernels do not cover (another rank, mode or type): that
node becomes a fallback op. Shapes are those of the graph, which are all fixed.
"""

from __future__ import annotations

from heimdall.engine.opencl.lowered import Lowered, Module
from heimdall.engine.opencl.operators import (  # noqa: F401  (they register themselves)
    attention,
    cached_attention,
    elementwise,
    grid_sample,
    lines,
    movement,
    normalise,
    products,
    reductions,
    resize,
    take,
    windows,
)
from heimdall.engine.opencl.operators.context import FLOAT, TABLE, TRUTH, Context
from heimdall.graph.graph import Graph, Node
from heimdall.graph.opsets import is_newer


def lower_node(module: Module, node: Node) -> list[Lowered] | None:
    """The lowered ops of a node, or None where it must fall back to the CPU.

    New tensors and constants are added to ``module``. Raises ValueError, IndexError or
    ArithmeticError where the lowering does not get along with the node: a fault of the lowering,
    for the graph was checked.
    """
    if is_newer(node, module.graph.opset):
        return None
    operator = TABLE.get(f"{node.domain}:{node.op_type}" if node.domain else node.op_type)
    if operator is None or not (operator.any_type or _all_float(module.graph, node)):
        return None
    return operator.lowering(Context(module, node))


def _all_float(graph: Graph, node: Node) -> bool:
    """True if what is computed is float or bool; constants may be indices, axes and sizes."""
    outputs = [name for name in node.outputs if name]
    inputs = [name for name in node.inputs if name and name not in graph.constants]
    return bool(outputs) and all(
        name in graph.tensors and graph.tensors[name].dtype in (FLOAT, TRUTH)
        for name in inputs + outputs
    )
