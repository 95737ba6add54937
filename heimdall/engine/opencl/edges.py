"""Data movement at the edges of a network is done by numpy while inputs and outputs are copied.

A network that takes NHWC pictures begins with a Transpose, a detector ends with Reshape,
Transpose and Concat. The host copies these tensors anyway; as kernels they would be extra passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from heimdall.engine.opencl.lowered import Lowered, Module


@dataclass(frozen=True)
class Edges:
    """``heads``: graph input -> (tensor the device gets, ops that make it). ``tails``: ops that
    make the graph outputs from what the device leaves, in order."""

    heads: dict[str, tuple[str, tuple[Lowered, ...]]]
    tails: tuple[Lowered, ...]

    @property
    def absorbed(self) -> set[int]:
        """Identities of the ops that the host does."""
        ops = [*self.tails, *(op for _, chain in self.heads.values() for op in chain)]
        return {id(op) for op in ops}


def find_edges(module: Module) -> Edges:
    """Which ops of a module the host can do on the way in and out."""
    tails = _tails(module)
    taken = {id(op) for op in tails}
    consumers = module.consumers()
    heads = {}
    for name in module.inputs:
        tensor, chain = name, []
        while True:
            readers = consumers.get(tensor, [])
            if len(readers) != 1 or tensor in module.outputs or id(readers[0]) in taken:
                break
            if not readers[0].spec.on_entry:
                break
            chain.append(readers[0])
            tensor = readers[0].output
        heads[name] = (tensor, tuple(chain))
    return Edges(heads, tuple(tails))


def _tails(module: Module) -> list[Lowered]:
    consumers = module.consumers()
    tails: list[Lowered] = []
    taken: set[int] = set()
    for op in reversed(module.ops):
        readers = consumers.get(op.output, [])
        movable = op.spec.on_exit and module.constants.keys().isdisjoint(op.inputs)
        if movable and all(id(reader) in taken for reader in readers):
            tails.append(op)
            taken.add(id(op))
    tails.reverse()
    # a network of nothing else still needs an op to schedule
    return tails if len(tails) < len(module.ops) else []
