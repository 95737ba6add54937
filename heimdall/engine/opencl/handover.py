"""Before which ops a job can leave a device, or come to one, as tensors of the graph.

Passes rename, reshape and fuse, and placement puts several tensors into one storage. So not every
place will do: all that later ops read from earlier ones must be whole tensors of the graph, each
in a storage of its own, or in the host's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.placed import Picture, Stored
from heimdall.engine.opencl.placement import Placer
from heimdall.graph.graph import Graph


@dataclass(frozen=True)
class DeviceCut:
    """What is alive before an op: its ``names`` in the graph; which of these are kept ``on_host``,
    and which ``on_device``, one of them in two forms where ops read both."""

    names: tuple[str, ...]
    on_host: tuple[str, ...]
    on_device: tuple[tuple[str, Stored], ...]

    def value(self, name: str) -> Stored:
        """Where a tensor is on the device."""
        return next(value for each, value in self.on_device if each == name)


def find_cuts(placer: Placer, graph: Graph, ops_of: Sequence[int]) -> dict[int, DeviceCut]:
    """Every cut between two layers, by the op that comes next; ``ops_of``: ops a layer."""
    first_ops = [0, *accumulate(ops_of)]
    first_steps = [0, *accumulate(len(placed.steps) for placed in placer.ops)]
    layers = list(_layers(placer))
    found = {}
    for layer in range(1, len(placer.ops)):
        cut = _cut(placer, graph, _alive(placer, layers, layer), first_steps[layer])
        if cut is not None:
            found[first_ops[layer]] = cut
    return found


def _layers(placer: Placer) -> Iterator[tuple[Lowered, int]]:
    """Each lowered op, and by which layer its tensors are first there. Views need no step of their
    own: they are there when something reads them."""
    layer_of = {id(placed.op): layer for layer, placed in enumerate(placer.ops)}
    absorbed, layer = placer.edges.absorbed, -1
    for op in placer.module.ops:
        if id(op) in absorbed:
            continue
        layer = layer_of.get(id(op), layer)
        yield op, layer_of.get(id(op), layer + 1)


def _alive(placer: Placer, layers: Sequence[tuple[Lowered, int]], layer: int) -> list[str]:
    """The tensors that ops from ``layer`` on, or the host at the end, read from before."""
    later = [op for op, own in layers if own >= layer]
    heads = {tensor for tensor, _ in placer.edges.heads.values()}
    made = {name for op in later for name in op.outputs} | heads | set(placer.module.inputs)
    read = [name for op in later for name in op.inputs] + placer.left
    return [
        name
        for name in dict.fromkeys(read)
        if name not in made and name not in placer.module.constants
    ]


def _cut(placer: Placer, graph: Graph, names: Sequence[str], step: int) -> DeviceCut | None:
    """None where some of what is alive is no tensor of the graph, or shares its memory."""
    alive = [s for s in placer.storages if s.first is not None and s.first < step <= s.last]
    on_host, on_device = [], []
    heads = [placer.forms(tensor)[:1] for tensor, _ in placer.edges.heads.values()]
    covered = {id(value.storage) for forms in heads for value in forms}  # written with the inputs
    for name in names:
        tensor = graph.tensors.get(name)
        if tensor is None or tuple(placer.module.shapes[name]) != tensor.shape:
            return None
        held = {id(value.storage) for value in placer.forms(name)} & set(map(id, alive))
        whole = [value for value in placer.forms(name) if _fills(value, tensor.shape)]
        values = {id(value.storage): value for value in whole if id(value.storage) in held}
        if held != values.keys() or not (held or name in placer.host):
            return None
        if name in placer.host:
            on_host.append(name)
        covered |= held
        on_device += [(name, value) for value in values.values()]
    if not covered.issuperset(map(id, alive)):
        return None
    return DeviceCut(tuple(names), tuple(on_host), tuple(on_device))


def _fills(value: Stored, shape: tuple[int, ...]) -> bool:
    """Whether a tensor of that shape is the whole of what its storage holds."""
    storage = value.storage
    if isinstance(value, Picture):
        size = (1, value.channels, value.height, value.width)
        return value.whole and (1,) * (4 - len(shape)) + shape == size
    if storage.picture is not None:  # a vector in the lanes of a picture
        return storage.picture[1:] == (1, 1) and value.view.size == storage.picture[0]
    return value.view.size == storage.size
