from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine.opencl.launch import Kernel, Launch, Traits
from heimdall.engine.opencl.slices import SLICE_NS, cut, ops_for, pieces_for, share_out

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


def launch(*size):
    return Launch(Kernel.of("", "none"), size, (1,) * len(size), ())


CORE = Traits("cpu", compute_units=1)


def test_a_long_layer_is_several_ops_by_its_arithmetic_and_its_bytes():
    assert ops_for(int(1e6), int(1e6), [launch(64)], CORE) == 1
    assert ops_for(int(1e9), 0, [launch(64)], CORE) == 4
    assert ops_for(0, int(100e6), [launch(64)], CORE) == 4
    assert ops_for(int(1e9), int(100e6), [launch(64)], CORE) == 8
    assert ops_for(int(1e9), 0, [launch(64)], Traits("cpu", compute_units=4)) == 1


def test_a_layer_has_no_more_ops_than_it_can_be_cut_into():
    assert ops_for(int(1e9), 0, [launch(1), launch(3, 2)], CORE) == 3
    assert ops_for(int(1e9), 0, [], CORE) == 1


def test_a_gpu_is_fast_enough_for_whole_layers():
    assert ops_for(int(1e9), 0, [launch(64)], Traits("gpu", 4)) == 1


@given(st.lists(st.floats(0.1, 100), max_size=40), st.integers(1, 12))
def test_enqueues_are_shared_out_in_order_and_none_is_lost(times, ops):
    shares = share_out(range(len(times)), times, ops)
    assert len(shares) == ops
    assert [each for share in shares for each in share] == list(range(len(times)))
    if len(times) >= ops:
        assert all(shares)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=40), st.integers(1, 12))
def test_shares_are_as_even_as_the_longest_enqueue_allows(times, ops):
    shares = share_out(range(len(times)), times, min(ops, len(times)))
    even = sum(times) / len(shares)
    assert all(sum(times[i] for i in share) <= even + 2 * max(times) for share in shares)
