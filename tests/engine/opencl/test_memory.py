from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine.opencl.memory import needs_clearing, place_scratch, plan_arena
from heimdall.engine.opencl.placed import ALIGN, Storage


def array(size, first, last):
    return Storage("array", None, size, first=first, last=last)


@given(
    st.lists(
        st.tuples(st.integers(1, 500), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=12,
    )
)
def test_storages_alive_together_never_share_memory(drawn):
    storages = [array(size, min(a, b), max(a, b)) for size, a, b in drawn]
    total = plan_arena(storages)
    for index, one in enumerate(storages):
        assert one.offset % 32 == 0
        assert one.offset + one.floats <= total
        for other in storages[:index]:
            together = one.first <= other.last and other.first <= one.last
            apart = (
                one.offset + one.floats <= other.offset or other.offset + other.floats <= one.offset
            )
            assert apart or not together


def test_memory_is_reused():
    storages = [array(320, step, step + 1) for step in range(10)]
    assert plan_arena(storages) == 2 * 320


def test_long_lived_storages_do_not_fragment_the_arena():
    shapes = [(320, 0, 1), (256, 1, 2), (128, 0, 2), (320, 2, 3), (64, 0, 3)]
    storages = [array(*shape) for shape in shapes]
    alive = [
        sum(each.floats for each in storages if each.first <= step <= each.last)
        for step in range(4)
    ]
    assert plan_arena(storages) == max(alive)


def test_what_stands_out_at_the_top_finds_room_below():
    shapes = [(64, 5, 7), (96, 0, 3), (256, 5, 6), (128, 3, 5), (64, 6, 7), (256, 1, 2)]
    alive = [sum(size for size, first, last in shapes if first <= t <= last) for t in range(8)]
    assert plan_arena([array(*shape) for shape in shapes]) == max(alive)
    assert plan_arena([array(*shape) for shape in shapes], repairs=0) > max(alive)


def picture(first, last, height=4, halo=(1, 1, 1, 1)):
    return Storage("picture", (16, height, 4), block=16, halo=halo, first=first, last=last)


def test_a_halo_is_cleared_only_where_something_else_was_in_it():
    same = [picture(0, 1), picture(2, 3)]
    plan_arena(same)
    assert same[0].offset == same[1].offset
    assert not needs_clearing(same[0], same)
    mixed = [picture(0, 1), picture(2, 3, height=5)]
    plan_arena(mixed)
    assert all(needs_clearing(item, mixed) for item in mixed)
    together = [picture(0, 3), picture(0, 3, height=5)]
    plan_arena(together)
    assert not any(needs_clearing(item, together) for item in together)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(4, 6), st.booleans()),
        min_size=1,
        max_size=10,
    ),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 900)), max_size=6),
)
def test_scratch_memory_touches_neither_what_lives_nor_halos_that_stay(drawn, needs):
    storages = [
        picture(min(a, b), max(a, b), height, (1, 1, 1, 1) if halo else (0, 0, 0, 0))
        for a, b, height, halo in drawn
    ]
    made = [array(floats, step, step) for step, floats in needs]
    total = place_scratch(made, storages, plan_arena(storages))
    for scratch in made:
        assert scratch.offset % ALIGN == 0
        assert scratch.offset + scratch.floats <= total
        for other in storages:
            lasting = any(other.halo) and not needs_clearing(other, storages)
            if lasting or other.first <= scratch.first <= other.last:
                assert (
                    scratch.offset >= other.offset + other.floats
                    or other.offset >= scratch.offset + scratch.floats
                )


def test_scratch_memory_lies_where_the_arena_is_free():
    storages = [array(320, 0, 1), array(320, 1, 2), array(640, 2, 3), array(320, 3, 4)]
    made = [array(500, 0, 0), array(640, 4, 4)]
    assert place_scratch(made, storages, plan_arena(storages)) == 960
