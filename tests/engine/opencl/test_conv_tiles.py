import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine.opencl.conv_tiles import dense_tiles, depthwise_tile, few_tile, product_tile
from heimdall.engine.opencl.launch import Traits

TRAITS = [Traits("cpu"), Traits("cpu", 8, 2, 16), Traits("gpu", 4, 32)]
sides = st.integers(1, 60)


@given(
    st.integers(1, 40),
    sides,
    sides,
    st.integers(1, 5000),
    st.sampled_from(TRAITS),
    st.sampled_from([(1,), (1, 3), (1, 2, 3, 4)]),
    st.booleans(),
    st.booleans(),
)
def test_splits_cover_every_output_block_once(
    blocks, width, height, depth, traits, widths, half, rows
):
    covered: list[int] = []
    splits = dense_tiles(blocks, width, height, depth, traits, widths, half, rows)
    assert 1 <= len(splits) <= 2
    for split in splits:
        assert split.tile.width <= width
        assert split.tile.height <= height
        assert half or not split.tile.half
        count = (split.tile.blocks + split.tile.half) * split.groups
        covered += range(split.first, split.first + count)
    assert covered == list(range(blocks))


@given(
    st.integers(1, 100),
    st.integers(1, 2000),
    sides,
    st.integers(1, 5000),
    st.sampled_from(TRAITS),
)
def test_a_tile_of_products_stays_within_a_matrix(blocks, rows, batch, depth, traits):
    tile = product_tile(blocks, rows, batch, depth, traits)
    assert tile.blocks >= 1
    assert tile.width <= rows
    assert tile.height == 1
    assert not tile.half


@given(sides, sides, st.integers(0, 7), st.integers(1, 3), st.sampled_from(TRAITS))
def test_depthwise_and_few_tiles_fit_the_picture(width, height, taps, stride, traits):
    tile = depthwise_tile(taps, stride, width, height, traits)
    assert tile.width <= width
    assert tile.height <= height
    for outputs in (1, 2, 3, 4):
        assert 1 <= few_tile(outputs, width, traits).width <= width


@pytest.mark.parametrize("traits", TRAITS[:2])
@pytest.mark.parametrize("width", [13, 52, 80, 104])
def test_tiles_fit_the_registers(width, traits):
    for split in dense_tiles(8, width, width, 576, traits, (1, 2, 3, 4)):
        tile = split.tile
        assert tile.blocks * (tile.width * tile.height + 1) + 1 <= traits.registers
    few = few_tile(3, width, traits)
    assert 3 * (few.width + 1) + 1 <= traits.registers


def test_wide_layers_get_a_tile_that_hides_the_latency():
    (split,) = dense_tiles(8, 52, 52, 576, Traits("cpu"), (1, 2, 3, 4))
    assert split.tile.blocks * split.tile.width * split.tile.height >= 8


def test_half_a_block_is_not_paid_for_in_full():
    splits = dense_tiles(3, 52, 52, 576, Traits("cpu"), (1, 2, 3, 4), half=True)
    assert [split.tile.half for split in splits] == [True]
