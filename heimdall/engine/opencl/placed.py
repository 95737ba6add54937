"""What placement makes: storages, the tensors that live in them, and steps between tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heimdall.engine.opencl.expression import Expression, Operand
from heimdall.engine.opencl.layout import Halo, Layout
from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.ops_elementwise import Elementwise
from heimdall.engine.opencl.strided import Strided

ALIGN = 32  # floats: storages start on cache lines, and rows of views stay vector-aligned
COPY = Elementwise(Expression.of("identity", Operand(0)))


@dataclass(eq=False)
class Storage:
    """A piece of device memory, live from step ``first`` to step ``last``, counted over all ops."""

    name: str
    picture: tuple[int, int, int] | None  # channels, height, width
    size: int = 0  # floats, of an array
    block: int = 1
    halo: Halo = (0, 0, 0, 0)
    frozen: bool = False  # an array aliases it: no halo may be added any more
    filled: bool = False  # the halo holds a border, not zeros
    shared: bool = False  # several tensors are views of it
    dedicated: bool = False  # a buffer of its own instead of a place in the arena
    exact: bool = False  # holds float, though tensors are half: indices, in a buffer of its own
    first: int | None = None
    last: int = -1
    offset: int = 0

    @property
    def layout(self) -> Layout:
        channels, height, width = self.picture or (self.size, 1, 1)
        return Layout(channels, height, width, self.block, self.halo, self.offset)

    @property
    def floats(self) -> int:
        floats = self.layout.floats if self.picture else self.size
        return -(-floats // ALIGN) * ALIGN

    def touch(self, index: int) -> None:
        self.first = index if self.first is None else min(self.first, index)
        self.last = max(self.last, index)

    def widen(self, halo: Halo) -> None:
        self.halo = tuple(max(a, b) for a, b in zip(self.halo, halo, strict=True))  # type: ignore[assignment]


@dataclass(frozen=True)
class Picture:
    """Channels ``start`` .. ``start + channels`` of a picture storage."""

    storage: Storage
    channels: int
    height: int
    width: int
    start: int = 0

    @property
    def layout(self) -> Layout:
        return self.storage.layout.slice(self.start, self.channels)

    @property
    def whole(self) -> bool:
        return self.storage.picture == (self.channels, self.height, self.width)


@dataclass(frozen=True)
class Array:
    """A view of a storage; ``view.offset`` counts from the start of the storage."""

    storage: Storage
    view: Strided

    @property
    def layout(self) -> Strided:
        return self.view.moved(self.storage.offset)


Stored = Picture | Array
Value = Stored | np.ndarray


@dataclass
class Step:
    """One kernel plan to be: what to compute from which values."""

    spec: Any
    inputs: tuple[Value, ...]
    outputs: tuple[Stored, ...]
    clears: bool = False  # a convolution that zeros the halo of its output as well

    @property
    def stored(self) -> dict[int, Stored]:
        """The inputs that are on the device, by their places."""
        return {n: v for n, v in enumerate(self.inputs) if not isinstance(v, np.ndarray)}


@dataclass
class PlacedOp:
    """One schedulable op: the lowered op and its steps (conversions first)."""

    op: Lowered
    steps: list[Step] = field(default_factory=list)
    nodes: tuple[str, ...] = ()
