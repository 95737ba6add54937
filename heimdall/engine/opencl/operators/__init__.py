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
from heimdall.errors import ModelError
from heimdall.graph.graph import Graph, Node


def lower_node(module: Module, node: Node) -> list[Lowered] | None:
    """The lowered ops of a node, or None where it must fall back to the CPU.

    New tensors and constants are added to ``module``. Raises ModelError where the node's inputs and
    attributes do not fit each other.
    """
    operator = TABLE.get(f"{node.domain}:{node.op_type}" if node.domain else node.op_type)
    if operator is None or not (operator.any_type or _all_float(module.graph, node)):
        return None
    try:
        return operator.lowering(Context(module, node))
    except (ValueError, IndexError, ArithmeticError) as error:
        raise ModelError(
            f"node {node.name!r} ({node.op_type}) of {module.graph.name}: its inputs and "
            f"attributes do not fit each other: {error}"
        ) from error


def _all_float(graph: Graph, node: Node) -> bool:
    """True if what is computed is float or bool; constants may be indices, axes and sizes."""
    outputs = [name for name in node.outputs if name]
    inputs = [name for name in node.inputs if name and name not in graph.constants]
    return bool(outputs) and all(
        name in graph.tensors and graph.tensors[name].dtype in (FLOAT, TRUTH)
        for name in inputs + outputs
    )
