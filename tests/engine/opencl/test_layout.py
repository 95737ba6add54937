import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine.opencl.layout import Layout

sizes = st.integers(1, 9)
halos = st.tuples(*[st.integers(0, 3)] * 4)


@given(sizes, sizes, sizes, st.sampled_from([1, 3, 4, 8, 16]), halos)
def test_unpack_inverts_pack(channels, height, width, block, halo):
    layout = Layout(channels, height, width, block, halo)
    array = np.random.default_rng(0).standard_normal((channels, height, width), np.float32)
    flat = layout.pack(array)
    assert flat.size == layout.floats
    assert np.array_equal(layout.unpack(flat), array)
    memory = np.full(layout.floats + 5, np.nan, np.float32)
    unpacked = layout.unpack(flat, memory)
    assert np.array_equal(unpacked, array)
    assert np.shares_memory(unpacked, memory)


@given(sizes, sizes, sizes, st.sampled_from([1, 4, 16]), halos)
def test_every_number_lies_where_the_strides_say(channels, height, width, block, halo):
    layout = Layout(channels, height, width, block, halo)
    array = np.arange(1.0, channels * height * width + 1, dtype=np.float32)
    array = array.reshape(channels, height, width)
    flat = layout.pack(array)
    for (c, y, x), value in np.ndenumerate(array):
        at = layout.origin + c // block * layout.plane + y * layout.row + x * block + c % block
        assert flat[at] == value
    assert np.count_nonzero(flat) == array.size  # halo and padding lanes are zeros


def test_a_block_of_all_channels_is_nhwc():
    array = np.random.default_rng(0).standard_normal((3, 4, 5), np.float32)
    flat = Layout(3, 4, 5, block=3).pack(array)
    assert np.array_equal(flat, array.transpose(1, 2, 0).reshape(-1))


def test_a_matrix_is_row_major():
    layout = Layout.matrix(2, 3)
    assert np.array_equal(layout.unpack(np.arange(6.0))[:, 0].T, [[0, 1, 2], [3, 4, 5]])


def test_a_slice_views_the_same_buffer():
    whole = Layout(40, 3, 5, 16, (1, 1, 1, 1))
    array = np.random.default_rng(0).standard_normal((40, 3, 5), np.float32)
    flat = whole.pack(array)
    part = whole.slice(16, 24)
    assert np.array_equal(part.unpack(flat[part.offset :]), array[16:])
    assert part.offset + part.floats == whole.floats


def test_a_slice_must_start_on_a_block():
    with pytest.raises(ValueError, match="view"):
        Layout(40, 3, 5).slice(8, 16)


@pytest.mark.parametrize(
    "bad", [{"channels": 0}, {"halo": (0, -1, 0, 0)}, {"offset": 5}, {"block": 0}]
)
def test_impossible_layouts_are_refused(bad):
    with pytest.raises(ValueError):  # noqa: PT011
        Layout(**{"channels": 3, "height": 2, "width": 2} | bad)


def test_a_matrix_may_begin_anywhere_unless_its_rows_are_vectors():
    assert Layout.matrix(3, 10, offset=7).origin == 7
    with pytest.raises(ValueError, match="offset"):
        Layout.matrix(3, 16, offset=7)


def test_pack_refuses_another_shape():
    with pytest.raises(ValueError, match="does not fit"):
        Layout(3, 2, 2).pack(np.zeros((3, 2, 3), np.float32))
