"""Early exits among the lowered ops of a module: their order, and which ops of a device each runs.

What an exit's head converts for itself (a tensor of the backbone in another layout) is made again
where the backbone needs it: the head may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from heimdall.engine.opencl.lowered import Module
from heimdall.engine.opencl.placed import PlacedOp
from heimdall.engine.opencl.verify import BrokenModuleError
from heimdall.graph.exits import Arranged, arrange
from heimdall.vocabulary.plans import Exit
from heimdall.vocabulary.ranges import as_ranges


def heads_of(module: Module) -> dict[int, int]:
    """Whose head an op belongs to, by its identity; ops of the backbone are left out."""
    if not module.graph.exits:
        return {}
    return {id(module.ops[op]): head for op, head in _arranged(module).head_of.items()}


def order_exits(module: Module) -> None:
    """Bring ops that passes have moved back to where variants are ranges."""
    if module.graph.exits:
        module.ops = [module.ops[op] for op in _arranged(module).order]


def _arranged(module: Module) -> Arranged:
    ops = [(op.inputs, op.outputs) for op in module.ops]
    try:
        return arrange(ops, module.graph.exits)
    except ValueError as error:
        raise BrokenModuleError(f"{module.graph.name}: passes mixed its exits: {error}") from error


def exits_on(module: Module, placed: Sequence[PlacedOp], ops_of: Sequence[int]) -> tuple[Exit, ...]:
    """The variants over the ops of a device; ``ops_of``: how many of them each placed op became."""
    if not module.graph.exits:
        return ()
    layers = {id(each.op): layer for layer, each in enumerate(placed)}
    first = [0, *accumulate(ops_of)]
    found = []
    for each, ranges in zip(module.graph.exits, _arranged(module).ranges, strict=True):
        needed = (id(op) for start, end in ranges for op in module.ops[start:end])
        run = (layers[op] for op in needed if op in layers)
        ops = sorted(op for layer in run for op in range(first[layer], first[layer + 1]))
        found.append(Exit(each.name, as_ranges(ops), each.accuracy))
    return tuple(found)
