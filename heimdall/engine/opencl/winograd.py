"""Winograd F(4x4, 3x3): which convolutions gain by it, in which tiles, with which weights.

16 outputs of a 3x3 convolution take 36 multiplications a channel instead of 144 (Lavin and Gray,
"Fast Algorithms for Convolutional Neural Networks", section 4). Two kernels (kernels/winograd*.cl)
take turns over bands of the picture, so that the transformed windows between them stay in the
cache and no single launch is long. Errors are about 1e-5 of the largest output.

A first layer with a 6x6 or 9x9 kernel (style networks have them) is a sum of 3x3 convolutions of
shifted pictures: its *channels* are all pairs of a shift and a channel of the picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heimdall.engine.opencl.conv_pass import Pass
from heimdall.engine.opencl.conv_tiles import Tile
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.layout import Layout

UNROLL = 4  # input channels a step

# Cost in multiply-adds of a vector: of transforming a window of one block of channels, and of
# transforming products to outputs.
_WINDOW = 250.0
_GATHERED = 1000.0  # the same where every lane is read from its own place
_OUTPUT = 330.0
_GAIN = 0.85  # of the direct kernel's cost: below it the detour pays
_BAND_BYTES = 1 << 19  # of transformed windows, such that they stay in the second-level cache
# The same a core where several share the work: each launch then costs 12 us, for the cores wait for
# one another, and windows change cores anyhow (nanodet on two: 10.6, 10.5 and 10.1 ms with 1 << 19,
# 20 and 21; the style network 13.4, 12.8 and 12.7).
_SHARED_BAND_BYTES = 1 << 21
_LARGE_BANDS = 8  # times as large, where they need not stay in that cache

# (output blocks, windows): relative speed by registers
_TILES_32 = {(2, 13): 1.0, (2, 10): 0.97, (2, 8): 0.95, (3, 8): 0.98, (1, 13): 0.9, (1, 8): 0.8}
_TILES_16 = {(2, 6): 1.0, (2, 4): 0.85, (1, 8): 0.8, (3, 4): 0.95}

# G of the paper: rows are the points 0, 1, -1, 2, -2 and infinity
_G = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)


@dataclass(frozen=True, eq=False)
class Winograd:
    """``tile``: output blocks by windows of a work-item. ``bands`` of groups of windows.

    ``offsets``: where each channel of the windows begins, in floats from that of the first; None
    where they are those of a tensor in channel blocks.
    """

    tile: Tile
    bands: tuple[tuple[int, int], ...]  # first group, groups
    window_floats: int  # of the transformed windows of the largest band
    weights: np.ndarray  # [oc, channels of the windows, 3, 3]
    offsets: np.ndarray | None


def choose(part: Pass, x: Layout, y: Layout, direct: float, traits: Traits) -> Winograd | None:
    """The cheapest way, or None where the direct kernel's cost (``direct``, multiply-adds of a
    vector) is no worse."""
    height, width = part.out_size
    split = _split(part, x, traits.block)
    plain = part.stride == part.tap_step == part.out_step == (1, 1) and y.block == traits.block
    if split is None or traits.kind != "cpu" or not plain:
        return None
    weights, offsets = split
    windows = -(-height // 4) * -(-width // 4)
    table = _TILES_32 if traits.registers >= 32 else _TILES_16
    fits = [(b, w) for b, w in table if w <= windows and y.blocks % b == 0]
    if min(height, width) < 4 or not fits:
        return None
    depth, blocks = _up(weights.shape[1], UNROLL), -(-weights.shape[1] // traits.block)
    edges = blocks * (_WINDOW if offsets is None else _GATHERED) + y.blocks * _OUTPUT

    def cost(shape: tuple[int, int]) -> float:
        return _up(windows, shape[1]) * (36 * depth * y.blocks / table[shape] + edges)

    best = min(fits, key=cost)
    if cost(best) > _GAIN * direct:
        return None
    units = traits.compute_units
    cache_bytes = _BAND_BYTES if units == 1 else _SHARED_BAND_BYTES * units
    layer = Traffic(
        group_bytes=4 * 36 * blocks * traits.block * best[1],
        weight_bytes=4 * 36 * depth * y.blocks * traits.block,
        readers=y.blocks // best[0],
    )
    bands = bands_of(-(-windows // best[1]), layer, cache_bytes)
    floats = bands[0][1] * layer.group_bytes // 4
    return Winograd(Tile(*best, 1), bands, floats, weights, offsets)


def _split(part: Pass, x: Layout, lanes: int) -> tuple[np.ndarray, np.ndarray | None] | None:
    """3x3 weights and the offsets of their channels, or None for other kernels."""
    weights = part.weights
    count = weights.shape[2] // 3
    if weights.shape[2:] != (3 * count, 3 * count) or not count:
        return None
    if count == 1 and x.block == lanes:
        return weights, None
    if count == 1 or x.block not in (1, x.channels) or x.channels > 4:
        return None
    outputs = weights.shape[0]
    parts = weights.reshape(outputs, x.channels, count, 3, count, 3).transpose(0, 2, 4, 1, 3, 5)
    shifts, channels = 3 * np.arange(count), np.arange(x.channels)
    lane = x.plane if x.block == 1 else 1
    offsets = shifts[:, None, None] * x.row + shifts[:, None] * x.block + channels * lane
    padded = np.zeros(_up(offsets.size, lanes), np.int32)
    padded[: offsets.size] = offsets.ravel()
    return parts.reshape(outputs, offsets.size, 3, 3), padded


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


class Traffic(NamedTuple):
    """What the second kernel reads: each group of windows once by each of ``readers`` groups of
    output blocks, and all weights once a band."""

    group_bytes: int  # of one group of windows
    weight_bytes: int
    readers: int


def bands_of(groups: int, layer: Traffic, cache_bytes: int) -> tuple[tuple[int, int], ...]:
    """Bands of ``groups`` groups of windows as (first, count), of equal size, such that they fit
    into the cache; or larger ones, where less comes from memory so: with 512 channels weights are
    38 MB."""

    def cut(band_bytes: int) -> tuple[tuple[int, int], ...]:
        most = max(1, band_bytes // layer.group_bytes)
        size = -(-groups // -(-groups // most))
        return tuple((first, min(size, groups - first)) for first in range(0, groups, size))

    small, large = cut(cache_bytes), cut(_LARGE_BANDS * cache_bytes)
    again = layer.readers * groups * layer.group_bytes
    less = len(large) * layer.weight_bytes + again < len(small) * layer.weight_bytes
    return large if less else small


# Of a product in pack: larger ones wake numpy's threads, whose spinning costs a start 0.3 s.
_COLUMNS = 512


def pack(weights: np.ndarray, lanes: int) -> np.ndarray:
    """[oc, ic, 3, 3] -> G w G' as [oc / lanes][36][ic][lanes], flat, padded with zeros."""
    oc, ic = weights.shape[:2]
    depth, groups = _up(ic, UNROLL), -(-oc // lanes)
    wide = np.zeros((groups * lanes, depth, 9))
    wide[:oc, :ic] = weights.reshape(oc, ic, 9)
    taps = np.ascontiguousarray(wide.reshape(groups, lanes, depth, 9).transpose(0, 3, 2, 1))
    # the nine taps are moved first: one matrix product a group, and nothing of 36 to reorder
    taps = taps.reshape(groups, 9, depth * lanes)
    full = np.empty((groups, 36, depth * lanes), np.float32)
    both = np.kron(_G, _G)
    for start in range(0, depth * lanes, _COLUMNS):
        part = slice(start, start + _COLUMNS)
        full[:, :, part] = both @ taps[:, :, part]
    return full.reshape(-1)
