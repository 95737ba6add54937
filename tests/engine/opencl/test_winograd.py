"""Bands of windows: small enough for the cache, or few where the weights are large."""

from __future__ import annotations

import pytest

from heimdall.engine.opencl.winograd import Traffic, bands_of

CACHE = 1 << 19
SMALL_WEIGHTS = Traffic(group_bytes=13 * 4 * 36 * 64, weight_bytes=4 * 36 * 64 * 64, readers=2)
LARGE_WEIGHTS = Traffic(group_bytes=13 * 4 * 36 * 512, weight_bytes=4 * 36 * 512 * 512, readers=16)


@pytest.mark.parametrize("layer", [SMALL_WEIGHTS, LARGE_WEIGHTS])
@pytest.mark.parametrize("groups", [1, 2, 7, 40, 241])
def test_bands_cover_all_windows_once_and_evenly(layer, groups):
    bands = bands_of(groups, layer, CACHE)
    assert [group for first, count in bands for group in range(first, first + count)] == list(
        range(groups)
    )
    assert all(count == bands[0][1] for _, count in bands[:-1])


def test_bands_fit_into_the_cache():
    bands = bands_of(241, SMALL_WEIGHTS, CACHE)
    assert len(bands) > 2
    assert max(count for _, count in bands) * SMALL_WEIGHTS.group_bytes <= CACHE


def test_large_weights_are_read_once_and_not_for_every_band_that_would_fit():
    assert 4 * LARGE_WEIGHTS.group_bytes > CACHE
    assert bands_of(4, LARGE_WEIGHTS, CACHE) == ((0, 4),)


def test_many_windows_of_a_layer_with_large_weights_are_still_cut():
    bands = bands_of(300, LARGE_WEIGHTS, CACHE)
    assert len(bands) > 2
    assert max(count for _, count in bands) * LARGE_WEIGHTS.group_bytes <= 8 * CACHE
