"""An ONNX graph becomes a short list of fused ops, still independent of any device."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from heimdall.engine.checks import check_forced, is_forced
from heimdall.engine.opencl import fuse
from heimdall.engine.opencl.expression import Expression, Operand
from heimdall.engine.opencl.fuse_conv import fuse_convolutions, fuse_shifts, fuse_zero_pads
from heimdall.engine.opencl.fuse_input import fuse_input_scales
from heimdall.engine.opencl.fuse_shuffle import fuse_shuffles
from heimdall.engine.opencl.lowered import Elementwise, Fallback, Lowered, Module
from heimdall.engine.opencl.operators import lower_node
from heimdall.graph.graph import Graph, Node


def lower(graph: Graph, force_fallback: Collection[str] = ()) -> Module:
    """Lower every node, then fuse.

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
    module.drop_unused()
    fuse.hoist_transposes(module)
    fuse.simplify_reshapes(module)
    fuse.fuse_moments(module)
    fuse.fuse_gates(module)
    fuse_convolutions(module)
    fuse_shuffles(module)
    fuse_zero_pads(module)
    fuse_input_scales(module)
    fuse_shifts(module)
    fuse.place_pads(module)
    fuse.group_elementwise(module)
    fuse.merge_fallbacks(module)
    return module


def copy_outputs(module: Module) -> None:
    """Outputs that are views of the inputs become copies: a network needs an op to schedule."""
    for name in module.outputs:
        view = f"{name}/view"
        module.shapes[view] = module.shapes[name]
        nodes = module.producers()[name].nodes
        for index, op in enumerate(module.ops):
            inputs, outputs = (
                tuple(view if each == name else each for each in names)
                for names in (op.inputs, op.outputs)
            )
            module.ops[index] = replace(op, inputs=inputs, outputs=outputs)
        copy = Elementwise(Expression.of("identity", Operand(0)))
        module.ops.append(Lowered(copy, (view,), (name,), nodes))


def _fallback(graph: Graph, node: Node) -> Lowered:
    inputs = tuple(name for name in node.inputs if name and name not in graph.constants)
    outputs = tuple(name for name in node.outputs if name)
    return Lowered(Fallback(), tuple(dict.fromkeys(inputs)), outputs, (node.name,))
