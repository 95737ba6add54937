"""Join neighbours of one kind: chains of elementwise ops, and nodes in a row that fall back."""

from __future__ import annotations

from dataclasses import replace

from heimdall.engine.opencl.exits import heads_of
from heimdall.engine.opencl.expression import compose
from heimdall.engine.opencl.lowered import Lowered, Module
from heimdall.engine.opencl.neighbours import Neighbours
from heimdall.engine.opencl.ops_elementwise import Elementwise

_MAX_OPERANDS = 8  # of a fused expression: each costs a kernel argument and registers


def group_elementwise(module: Module) -> None:
    """Join an elementwise op with the only op that reads it, where the shapes are the same."""
    Neighbours(module).join_pairs(_joined)


def _joined(around: Neighbours, op: Lowered, reader: Lowered) -> Lowered | None:
    if not isinstance(op.spec, Elementwise) or not isinstance(reader.spec, Elementwise):
        return None
    if around.module.shapes[op.output] != around.module.shapes[reader.output]:
        return None
    expression, inputs = compose(
        reader.spec.expression, reader.inputs, op.output, op.spec.expression, op.inputs
    )
    if len(inputs) > _MAX_OPERANDS:
        return None
    expression = expression.contracted
    return Lowered(Elementwise(expression), inputs, reader.outputs, op.nodes + reader.nodes)


def merge_fallbacks(module: Module) -> None:
    """Consecutive fallback nodes become one op: one trip to the CPU instead of several. Those of
    an early exit stay apart from the rest."""
    merged: list[Lowered] = []
    heads, head = heads_of(module), None
    for op in module.ops:
        before, head = head, heads.get(id(op))
        joins = bool(merged) and op.spec.falls_back and merged[-1].spec.falls_back
        if joins and head == before:
            last = merged[-1]
            inputs = (*last.inputs, *(name for name in op.inputs if name not in last.outputs))
            outputs, nodes = last.outputs + op.outputs, last.nodes + op.nodes
            merged[-1] = Lowered(op.spec, tuple(dict.fromkeys(inputs)), outputs, nodes)
        else:
            merged.append(op)
    module.ops = list(merged)
    consumers = module.consumers()
    for op in merged:
        if op.spec.falls_back:
            read = tuple(n for n in op.outputs if consumers.get(n) or n in module.outputs)
            module.replace(op, replace(op, outputs=read))
