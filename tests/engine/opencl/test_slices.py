from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine.opencl.slices import SLICE_NS, cut, pieces_for

axes = st.tuples(st.integers(1, 12), st.integers(1, 4))


@given(st.lists(axes, min_size=1, max_size=3), st.integers(1, 9))
def test_pieces_cover_every_work_item_once(sides, pieces):
    local = tuple(part for _, part in sides)
    size = tuple(count * part for count, part in sides)
    seen: set[tuple[int, ...]] = set()
    for offset, shape in cut(size, local, pieces):
        start = offset or (0,) * len(size)
        assert all(side % part == 0 for side, part in zip(shape, local, strict=True))
        items: list[tuple[int, ...]] = [()]
        for first, side in zip(start, shape, strict=True):
            items = [(*item, index) for item in items for index in range(first, first + side)]
        assert not seen.intersection(items)
        seen.update(items)
    assert len(seen) == prod(size)


def test_the_outermost_axis_that_divides_evenly_is_cut():
    assert cut((64, 8, 2), (1, 1, 1), 4) == [((0, row, 0), (64, 2, 2)) for row in (0, 2, 4, 6)]


def test_a_kernel_of_one_work_group_stays_whole():
    assert cut((16, 4), (16, 4), 3) == [(None, (16, 4))]


def test_pieces_keep_clear_of_the_slice():
    assert pieces_for(SLICE_NS // 2) == 1
    assert pieces_for(SLICE_NS) == 2
    assert pieces_for(30 * SLICE_NS) == 40
