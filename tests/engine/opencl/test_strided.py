from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine.opencl.strided import Strided, collapse

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple)


def view(array, strided):
    strides = [4 * step for step in strided.strides]
    return np.lib.stride_tricks.as_strided(array[strided.offset :], strided.shape, strides)


@given(shapes, st.data())
def test_views_are_numpys(shape, data):
    array = np.arange(np.prod(shape), dtype=np.float32)
    expected = array.reshape(shape)
    perm = data.draw(st.permutations(range(len(shape))))
    strided = Strided.contiguous(shape).transposed(perm)
    expected = expected.transpose(perm)
    assert np.array_equal(view(array, strided), expected)
    starts = [data.draw(st.integers(0, size - 1)) for size in strided.shape]
    sizes = [size - start for size, start in zip(strided.shape, starts, strict=True)]
    cut = strided.sliced(starts, [1] * len(starts), sizes)
    assert np.array_equal(view(array, cut), expected[tuple(slice(s, None) for s in starts)])
    assert cut.broadcast((2, *sizes)).shape == (2, *sizes)
    assert cut.is_contiguous == (view(array, cut).flags.c_contiguous)


@given(shapes, st.data())
def test_collapsing_axes_visits_the_same_elements_in_the_same_order(shape, data):
    perm = data.draw(st.permutations(range(len(shape))))
    strided = Strided.contiguous(shape).transposed(perm)
    sizes, (steps,) = collapse(strided.shape, strided.strides)
    array = np.arange(np.prod(shape), dtype=np.float32)
    joined = view(array, Strided(sizes, steps))
    assert np.array_equal(joined.reshape(-1), view(array, strided).reshape(-1))


def test_contiguous_arrays_collapse_to_one_axis():
    assert collapse((2, 3, 4), (12, 4, 1), (12, 4, 1))[0] == (24,)
    assert collapse((2, 3, 4), (12, 4, 1), (0, 4, 1))[0] == (2, 12)
