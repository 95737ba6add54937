"""Long kernels in pieces: what runs cannot be interrupted, so no enqueue may run for long.

An urgent job, or a frame, waits for at most one enqueue. A piece is the same kernel over a part
of its work-items (the global offset of OpenCL), so results do not depend on the cut.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil

SLICE_NS = 4_000_000
_AIM = 0.75  # of a slice: the same kernel takes longer when caches are cold or memory is busy
_EVEN = 4  # work-groups a piece from which a remainder does not matter

Size = tuple[int, ...]


def pieces_for(elapsed_ns: int) -> int:
    """How many pieces a kernel should have that takes this long in one."""
    return max(1, ceil(elapsed_ns / (_AIM * SLICE_NS)))


def cut(size: Size, local: Size, pieces: int) -> list[tuple[Size | None, Size]]:
    """(global offset, global size) of each piece; an offset of None is 0.

    Along the outermost axis that can be cut evenly, which leaves the order of the work as it
    was; there are fewer pieces than asked for when no axis has so many work-groups.
    """
    groups = [whole // part for whole, part in zip(size, local, strict=True)]
    if pieces == 1 or max(groups) == 1:
        return [(None, size)]
    even = [axis for axis, count in enumerate(groups) if _is_even(count, pieces)]
    axis = max(even) if even else groups.index(max(groups))
    pieces = min(pieces, groups[axis])
    edges = [groups[axis] * piece // pieces * local[axis] for piece in range(pieces + 1)]
    return [
        (_replaced((0,) * len(size), axis, start), _replaced(size, axis, stop - start))
        for start, stop in pairwise(edges)
    ]


def _is_even(groups: int, pieces: int) -> bool:
    return groups >= _EVEN * pieces or (groups >= pieces and groups % pieces == 0)


def _replaced(size: Size, axis: int, value: int) -> Size:
    return (*size[:axis], value, *size[axis + 1 :])
