"""Row-major arrays and their views: offset and strides in floats, as in numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

Shape = tuple[int, ...]


def row_major(shape: Sequence[int]) -> Shape:
    """Strides of a contiguous array."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@dataclass(frozen=True)
class Strided:
    """An array in a buffer; ``offset`` is the index of its first element."""

    shape: Shape
    strides: Shape
    offset: int = 0

    @classmethod
    def contiguous(cls, shape: Sequence[int], offset: int = 0) -> Strided:
        return cls(tuple(shape), row_major(shape), offset)

    @property
    def is_contiguous(self) -> bool:
        wanted = row_major(self.shape)
        return all(
            size == 1 or have == want
            for size, have, want in zip(self.shape, self.strides, wanted, strict=True)
        )

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def moved(self, offset: int) -> Strided:
        return replace(self, offset=self.offset + offset)

    def transposed(self, perm: Sequence[int]) -> Strided:
        shape = tuple(self.shape[axis] for axis in perm)
        return Strided(shape, tuple(self.strides[axis] for axis in perm), self.offset)

    def sliced(self, starts: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Strided:
        offset = self.offset + sum(a * b for a, b in zip(starts, self.strides, strict=True))
        strides = tuple(a * b for a, b in zip(steps, self.strides, strict=True))
        return Strided(tuple(shape), strides, offset)

    def reshaped(self, shape: Sequence[int]) -> Strided:
        """Only for contiguous arrays."""
        if not self.is_contiguous:
            raise ValueError(f"{self} is not contiguous")
        return Strided.contiguous(shape, self.offset)

    def broadcast(self, shape: Sequence[int]) -> Strided:
        """The view under a larger shape, with stride 0 along repeated axes (numpy's rules)."""
        missing = len(shape) - len(self.shape)
        sizes, strides = (1,) * missing + self.shape, (0,) * missing + self.strides
        return Strided(
            tuple(shape),
            tuple(
                0 if size == 1 and want != 1 else step
                for size, step, want in zip(sizes, strides, shape, strict=True)
            ),
            self.offset,
        )


def broadcasts(x: Shape, y: Shape) -> bool:
    """Whether x repeated along axes is y, by numpy's rules."""
    if x == y:  # most are
        return True
    behind = y[len(y) - len(x) :]
    return len(x) <= len(y) and all(a in (1, b) for a, b in zip(x, behind, strict=True))


def collapse(shape: Shape, *strides: Shape) -> tuple[Shape, list[Shape]]:
    """Join neighbouring axes that every array steps through as one; drop axes of size one."""
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis in axes:
        joined = bool(sizes) and all(
            kept[-1] == own[axis] * shape[axis] for kept, own in zip(steps, strides, strict=True)
        )
        if joined:
            sizes[-1] *= shape[axis]
            for kept, own in zip(steps, strides, strict=True):
                kept[-1] = own[axis]
        else:
            sizes.append(shape[axis])
            for kept, own in zip(steps, strides, strict=True):
                kept.append(own[axis])
    if not sizes:
        sizes, steps = [1], [[0] for _ in strides]
    return tuple(sizes), [tuple(kept) for kept in steps]
