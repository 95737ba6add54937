"""Which layers must wait for which: by what each reads and writes, and where that lies.

Layers that share no memory may run at the same time. So two branches of a network may, where the
arena is planned for it: no two storages share bytes there unless all that touches the one comes
before all that touches the other, in any order in which the layers can run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from heimdall.engine.opencl.placed import Array, PlacedOp, Step, Storage, Stored
from heimdall.graph.branches import ancestors

INNER, HALO = 1, 2
BOTH = INNER | HALO


@dataclass(frozen=True)
class Access:
    """What a layer does to blocks ``first`` .. ``end`` of the channels of a storage."""

    layer: int
    first: int
    end: int
    reads: int = 0  # INNER, HALO
    writes: int = 0

    def clashes(self, other: Access) -> bool:
        """Whether the order of the two matters."""
        apart = self.end <= other.first or other.end <= self.first
        mine, theirs = self.reads | self.writes, other.reads | other.writes
        return not apart and bool(self.writes & theirs or other.writes & mine)


class Order:
    """The order that the tensors alone demand, wherever they come to lie."""

    def __init__(self, layers: Sequence[PlacedOp]) -> None:
        self._accesses: dict[Storage, list[Access]] = {}
        for index, layer in enumerate(layers):
            for step in layer.steps:
                self._note(index, step)
        self._layer_of = [index for index, layer in enumerate(layers) for _ in layer.steps]
        for storage, made in self._accesses.items():
            if storage.picture and any(storage.halo) and not storage.dedicated:
                # the op that comes first clears the halo, if others have been in that memory
                made.append(Access(made[0].layer, 0, storage.layout.blocks, writes=HALO))
        self._needs: list[set[int]] = [set() for _ in layers]
        for made in self._accesses.values():
            for a, b in combinations(made, 2):
                if a.layer != b.layer and a.clashes(b):
                    _add(self._needs, a.layer, b.layer)
        self._before = [*ancestors(self._needs), (1 << len(layers)) - 1]  # at last the host
        self._touched: dict[Storage, tuple[int, int]] = {}

    def _note(self, layer: int, step: Step) -> None:
        for value in step.stored.values():
            self._add_access(layer, value, reads=BOTH)
        fills = step.spec.fills_halo
        for value in step.outputs:
            whole = isinstance(value, Array) or value.storage.picture is None
            all_of_it = fills or step.spec.falls_back or whole
            self._add_access(layer, value, BOTH if fills else 0, BOTH if all_of_it else INNER)

    def _add_access(self, layer: int, value: Stored, reads: int = 0, writes: int = 0) -> None:
        access = Access(layer, *_reach(value), reads, writes)
        self._accesses.setdefault(value.storage, []).append(access)

    def meet(self, a: Storage, b: Storage) -> bool:
        """Whether two storages may be in use at once."""
        (touch_a, before_a), (touch_b, before_b) = self._touch(a), self._touch(b)
        return bool(touch_a & ~before_b) and bool(touch_b & ~before_a)

    def _touch(self, storage: Storage) -> tuple[int, int]:
        """The layers that touch a storage, and those that have run before them all, as bits."""
        if storage not in self._touched:
            layers = self._layers(storage)
            if storage.last >= len(self._layer_of):
                layers.add(len(self._needs))
            before = self._before[-1]
            for layer in layers:
                before &= self._before[layer]
            self._touched[storage] = sum(1 << layer for layer in layers), before
        return self._touched[storage]

    def _layers(self, storage: Storage) -> set[int]:
        """Those that touch a storage. Scratch memory holds no tensor of any step: the layer that it
        lives in has it."""
        if storage in self._accesses:
            return {access.layer for access in self._accesses[storage]}
        return set(self._layer_of[storage.first : storage.last + 1])

    def needs(self, arena: Iterable[Storage]) -> list[set[int]]:
        """What each layer must wait for, where these storages, and scratch memory, have their
        places in the arena."""
        needs = [set(each) for each in self._needs]
        placed = sorted(arena, key=lambda storage: storage.offset)
        for index, one in enumerate(placed):
            for other in placed[index + 1 :]:
                if other.offset >= one.offset + one.floats:
                    break
                for a in self._layers(one):
                    for b in self._layers(other) - {a}:
                        _add(needs, a, b)
        return needs


def _add(needs: Sequence[set[int]], a: int, b: int) -> None:
    needs[max(a, b)].add(min(a, b))


def _reach(value: Stored) -> tuple[int, int]:
    """The blocks of channels of its storage that a value is in."""
    storage = value.storage
    if isinstance(value, Array) or storage.picture is None:
        return 0, storage.layout.blocks
    return value.start // storage.block, -(-(value.start + value.channels) // storage.block)
