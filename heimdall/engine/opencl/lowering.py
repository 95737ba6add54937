"""An ONNX graph becomes lowered ops, node by node; ``passes`` then make fewer of them."""

from __future__ import annotations

import logging
from collections.abc import Collection

from heimdall.engine.checks import check_forced, is_forced
from heimdall.engine.opencl.lowered import Fallback, Lowered, Module
from heimdall.engine.opencl.operators import lower_node
from heimdall.engine.opencl.verify import misfit
from heimdall.graph.graph import Graph, Node

log = logging.getLogger(__name__)


def lower(
    graph: Graph, force_fallback: Collection[str] = (), on_cpu: Collection[str] = ()
) -> Module:
    """Lower every node.

    Nodes that no kernel covers, those that the lowering gets wrong, and those whose operator type
    or name is in ``force_fallback``, become ``Fallback`` ops; so do the nodes named ``on_cpu``.
    """
    check_forced(graph, force_fallback)
    module = Module(
        ops=[],
        shapes={name: tensor.some_shape for name, tensor in graph.tensors.items()},
        constants=dict(graph.constants),
        inputs=tuple(tensor.name for tensor in graph.inputs),
        outputs=tuple(tensor.name for tensor in graph.outputs),
        graph=graph,
    )
    for node in graph.nodes:
        forced = node.name in on_cpu or is_forced(node, force_fallback)
        ops = None if forced else _lowered(module, node)
        module.ops.extend([_fallback(graph, node)] if ops is None else ops)
    return module


def _lowered(module: Module, node: Node) -> list[Lowered] | None:
    """Its ops; None, and a word in the log, where they would not fit the node's tensors."""
    try:
        ops = lower_node(module, node)
        problems = [problem for op in ops or () if (problem := misfit(module, op))]
    except (ValueError, IndexError, ArithmeticError) as error:
        problems = [f"{type(error).__name__}: {error}"]
        log.debug("lowering %r failed", node.name, exc_info=True)
    if not problems:
        return ops
    log.warning(
        "node %r (%s) of %s runs on the CPU: the OpenCL engine cannot lower it, which is a fault "
        "of Heimdall (%s)",
        node.name,
        node.op_type,
        module.graph.name,
        problems[0],
    )
    return None


def _fallback(graph: Graph, node: Node) -> Lowered:
    inputs = tuple(name for name in node.inputs if name and name not in graph.constants)
    outputs = tuple(name for name in node.outputs if name)
    return Lowered(Fallback(), tuple(dict.fromkeys(inputs)), outputs, (node.name,))
