"""How the pixels of a picture, or the lines of an array, are shared out to work-items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.engine.opencl.conv_source import render
from heimdall.engine.opencl.launch import Arg, Kernel, Launch, Ref, Traits
from heimdall.engine.opencl.layout import Layout

_PIXELS = 512  # vectors a CPU work-item handles: about 10 us, far above the cost of a work-group


def pointer(name: str, layout: Layout) -> list[Arg]:
    """The arguments ``buffer, base, plane, row`` of a picture."""
    numbers = (layout.origin, layout.plane, layout.row)
    return [Ref(name), *(np.int32(number) for number in numbers)]


def ints(*values: int) -> list[Arg]:
    return [np.int32(value) for value in values]


def source(name: str, traits: Traits, block: int, **variables: Any) -> Kernel:
    """A kernel of common.cl's family."""
    return render(name, block=block, device=traits.kind, storage=traits.storage, **variables)


@dataclass(frozen=True)
class Grid:
    """``chunk_w`` x ``chunk_h`` pixels of one block a work-item."""

    width: int
    height: int
    blocks: int
    chunk_w: int
    chunk_h: int
    local: tuple[int, int, int]

    @classmethod
    def over(cls, width: int, height: int, blocks: int, traits: Traits) -> Grid:
        """Pixels in any order: whole rows, or parts of long ones."""
        if traits.kind == "gpu":
            return cls(width, height, blocks, 1, 1, (16, 4, 1))
        wanted = max(8, min(_PIXELS, width * height * blocks // (16 * traits.compute_units)))
        chunk_w = min(width, wanted) if height == 1 else width
        chunk_h = 1 if height == 1 else max(1, min(height, wanted // width))
        return cls(width, height, blocks, chunk_w, chunk_h, (1, 1, 1))

    @classmethod
    def bands(cls, width: int, height: int, blocks: int, traits: Traits) -> Grid:
        """Whole rows only, for reductions: at most 16 bands a block."""
        least = max(1, min(height, _PIXELS // width if traits.kind == "cpu" else 1))
        chunk_h = max(least, -(-height // 16))
        local = (1, 1, 1) if traits.kind == "cpu" else (1, 16, 1)  # all bands of a block
        return cls(width, height, blocks, width, chunk_h, local)

    @property
    def bands_per_block(self) -> int:
        return -(-self.height // self.chunk_h)

    @property
    def args(self) -> list[Arg]:
        return ints(self.width, self.height, self.chunk_w, self.chunk_h)

    def launch(self, kernel: Kernel, args: list[Arg]) -> Launch:
        items = (-(-self.width // self.chunk_w), self.bands_per_block, self.blocks)
        size = tuple(-(-n // local) * local for n, local in zip(items, self.local, strict=True))
        return Launch(kernel, size, self.local, tuple(args))


def most(count: int, limit: int) -> int:
    """The largest divisor of ``count`` up to ``limit``."""
    return next(each for each in range(min(count, limit), 0, -1) if count % each == 0)


def line_launch(kernel: Kernel, items: int, args: list[Arg], traits: Traits) -> Launch:
    """A one-dimensional launch; the kernel tests its bound."""
    local = 1 if traits.kind == "cpu" else 64
    return Launch(kernel, (-(-items // local) * local,), (local,), tuple(args))


def chunked(count: int, cost: int, traits: Traits) -> tuple[int, int]:
    """(lines a work-item, work-items) for ``count`` lines of ``cost`` numbers each."""
    if traits.kind == "gpu":
        return 1, count
    chunk = max(1, min(4096 // max(1, cost), -(-count // (8 * traits.compute_units))))
    return chunk, -(-count // chunk)
