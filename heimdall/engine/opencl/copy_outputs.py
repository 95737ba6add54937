"""A network of nothing but views gets an op: a scheduler needs something to schedule."""

from __future__ import annotations

from dataclasses import replace

from heimdall.engine.opencl.edges import find_edges
from heimdall.engine.opencl.expression import Expression, Operand
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import (
    Cast,
    Concat,
    Expand,
    Lowered,
    Module,
    Reshape,
    Slice,
    Transpose,
)
from heimdall.engine.opencl.ops_elementwise import Elementwise
from heimdall.engine.opencl.placement import Placer

_MOVES = (Cast, Concat, Expand, Reshape, Slice, Transpose)


def copy_outputs(module: Module, traits: Traits) -> None:
    """Outputs that are views of the inputs become copies, where no op would have a kernel."""
    if not all(isinstance(op.spec, _MOVES) for op in module.ops) or _has_steps(module, traits):
        return
    for name in module.outputs:
        view = module.tensor(f"{name}/view", module.shapes[name])
        nodes = module.producers()[name].nodes
        for op in list(module.ops):
            inputs, outputs = (
                tuple(view if each == name else each for each in names)
                for names in (op.inputs, op.outputs)
            )
            module.replace(op, replace(op, inputs=inputs, outputs=outputs))
        copy = Elementwise(Expression.of("identity", Operand(0)))
        module.ops.append(Lowered(copy, (view,), (name,), nodes))


def _has_steps(module: Module, traits: Traits) -> bool:
    """Whether an op must be computed wherever its tensors are placed."""
    placer = Placer(module, find_edges(module), traits)
    placer.place()
    return bool(placer.ops)
