"""Long kernels in pieces: what runs cannot be interrupted, so no enqueue may run for long.

An urgent job, or a frame, waits for at most one enqueue. A piece is the same kernel over a part
of its work-items (the global offset of OpenCL), so results do not depend on the cut.

On CPUs a layer may take as long as a gap between frames. It is several *ops* then, each some of
its enqueues, so that a chunk may end within it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from math import ceil
from typing import TypeVar

from heimdall.engine.opencl.launch import Launch, Traits

T = TypeVar("T")

OP_FLOPS, OP_BYTES = 0.25e9, 25e6  # either is one op's on one core: about 3 ms
SLICE_NS = 4_000_000
_AIM = 0.75  # of a slice: the same kernel takes longer when caches are cold or memory is busy
_EVEN = 4  # work-groups a piece from which a remainder does not matter

Size = tuple[int, ...]


def pieces_for(elapsed_ns: int) -> int:
    """How many pieces a kernel should have that takes this long in one."""
    return max(1, ceil(elapsed_ns / (_AIM * SLICE_NS)))


def ops_for(flops: int, size: int, launches: Iterable[Launch], traits: Traits) -> int:
    """How many ops a layer of so many operations and bytes should be. Not a matter of measuring:
    a profile must find the same ops the next time."""
    if traits.kind != "cpu":
        return 1
    wanted = round((flops / OP_FLOPS + size / OP_BYTES) / traits.compute_units)
    longest = max((max(_groups(each.global_size, each.local_size)) for each in launches), default=1)
    return max(1, min(wanted, longest))


def share_out(enqueues: Sequence[T], times: Sequence[float], ops: int) -> list[list[T]]:
    """The enqueues of a layer, in order, as those of ``ops`` ops that take equally long, as far as
    possible. Without enough for all, the last ones have none."""
    sums, count = list(accumulate(times, initial=0.0)), len(enqueues)
    ends = [0]
    for op in range(1, ops):
        fair = sums[-1] * op / ops
        end = bisect_left(sums, fair)
        if end and fair - sums[end - 1] < sums[end] - fair:
            end -= 1
        fewest = min(ends[-1] + 1, count)
        ends.append(max(fewest, min(end, count - (ops - op))))
    return [list(enqueues[start:end]) for start, end in pairwise([*ends, count])]


def shares(
    taken_ns: Sequence[int], ops: int, cut_into: Callable[[int, int], list[T]]
) -> list[list[tuple[T, float]]]:
    """What each op of a layer enqueues, with the time that it should take, given what its launches
    take. ``cut_into(launch, pieces)`` cuts one of them into so many pieces, or fewer."""
    made: list[tuple[T, float]] = []
    for launch, elapsed_ns in enumerate(taken_ns):
        reached = ceil(elapsed_ns * ops / sum(taken_ns))  # the most ops it is a part of
        pieces = reached * ceil(pieces_for(elapsed_ns) / reached)
        parts = cut_into(launch, pieces)
        made += [(part, elapsed_ns / len(parts)) for part in parts]
    return share_out(made, [each_ns for _, each_ns in made], ops)


def cut(size: Size, local: Size, pieces: int) -> list[tuple[Size | None, Size]]:
    """(global offset, global size) of each piece; an offset of None is 0.

    Along the outermost axis that can be cut evenly, which leaves the order of the work as it
    was; there are fewer pieces than asked for when no axis has so many work-groups.
    """
    groups = _groups(size, local)
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


def _groups(size: Size, local: Size) -> list[int]:
    return [whole // part for whole, part in zip(size, local, strict=True)]


def _is_even(groups: int, pieces: int) -> bool:
    return groups >= _EVEN * pieces or (groups >= pieces and groups % pieces == 0)


def _replaced(size: Size, axis: int, value: int) -> Size:
    return (*size[:axis], value, *size[axis + 1 :])
