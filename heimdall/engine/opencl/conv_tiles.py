"""Which register tile a convolution gets: small tables of speeds and a cost model.

A tile is (output blocks, pixels wide, pixels high). Its accumulators, the weight vectors and
one broadcast value must fit in the registers; on a core with two fused multiply-add units at
least eight accumulators hide the latency. Relative speeds were measured with one PoCL thread on
two AVX-512 cores (one unit, 117 GFLOP/s, and two units, 283 GFLOP/s) and averaged. Some tiles that
would fit (2x14, 3x9, 4x7) are slow on one of them, so only good ones are listed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from heimdall.engine.opencl.launch import Traits


class Tile(NamedTuple):
    """Output blocks x pixels wide x pixels high; ``half``: and one block of half its lanes."""

    blocks: int
    width: int
    height: int
    half: bool = False


# Relative speed with 32 registers.
_DENSE_32 = {
    Tile(2, 13, 1): 1.00, Tile(2, 10, 1): 0.97, Tile(2, 8, 1): 0.97, Tile(2, 7, 1): 0.98,
    Tile(2, 6, 1): 0.95, Tile(2, 5, 1): 0.92, Tile(2, 4, 1): 0.90, Tile(2, 2, 1): 0.65,
    Tile(2, 1, 1): 0.35, Tile(2, 4, 2): 1.00, Tile(2, 2, 2): 0.90,
    Tile(3, 8, 1): 0.97, Tile(3, 7, 1): 0.99, Tile(3, 5, 1): 0.95, Tile(3, 4, 1): 0.93,
    Tile(3, 1, 1): 0.40, Tile(1, 7, 2): 0.97,
    Tile(4, 6, 1): 0.95, Tile(4, 4, 1): 0.95, Tile(4, 1, 1): 0.45,
    Tile(1, 13, 1): 0.90, Tile(1, 8, 1): 0.85, Tile(1, 4, 2): 0.85, Tile(1, 4, 1): 0.65,
    Tile(1, 2, 1): 0.35, Tile(1, 1, 1): 0.18,
    Tile(1, 12, 1, True): 0.85, Tile(1, 8, 1, True): 0.84, Tile(1, 4, 2, True): 0.86,
    Tile(1, 4, 1, True): 0.75, Tile(1, 2, 1, True): 0.45, Tile(2, 8, 1, True): 0.94,
    Tile(2, 4, 2, True): 0.96, Tile(2, 4, 1, True): 0.92, Tile(2, 2, 1, True): 0.6,
    Tile(3, 4, 1, True): 0.93, Tile(0, 12, 1, True): 0.65, Tile(0, 8, 2, True): 0.7,
    Tile(0, 4, 1, True): 0.4, Tile(0, 2, 1, True): 0.2,
}  # fmt: skip
# 16 registers (AVX2), from the same model of loads against multiply-adds; not measured.
_DENSE_16 = {
    Tile(2, 6, 1): 1.0, Tile(2, 5, 1): 0.95, Tile(2, 4, 1): 0.9, Tile(2, 3, 1): 0.8,
    Tile(2, 2, 1): 0.6, Tile(2, 1, 1): 0.35, Tile(3, 4, 1): 1.0, Tile(3, 2, 1): 0.75,
    Tile(1, 8, 1): 0.8, Tile(1, 4, 1): 0.6, Tile(1, 2, 1): 0.3, Tile(1, 1, 1): 0.15,
    Tile(4, 2, 1): 0.8, Tile(4, 1, 1): 0.5,
}  # fmt: skip
# Where results lie row by row, so that what several blocks store is side by side. 64 deep 2x13 is
# 20% slower than 4x4, 384 deep 7% slower than 4x6, 1500 deep as fast (one thread, 177 GFLOP/s).
_ROWS_32 = {
    Tile(4, 6, 1): 1.00, Tile(4, 4, 1): 1.00, Tile(4, 1, 1): 0.45, Tile(3, 8, 1): 0.96,
    Tile(3, 7, 1): 0.95, Tile(3, 5, 1): 0.93, Tile(3, 4, 1): 0.92, Tile(3, 1, 1): 0.40,
    Tile(2, 13, 1): 0.93, Tile(2, 10, 1): 0.92, Tile(2, 7, 1): 0.92, Tile(2, 4, 1): 0.88,
    Tile(2, 2, 1): 0.65, Tile(2, 1, 1): 0.35, Tile(1, 13, 1): 0.80, Tile(1, 8, 1): 0.75,
    Tile(1, 4, 1): 0.65, Tile(1, 2, 1): 0.35, Tile(1, 1, 1): 0.18, Tile(1, 8, 1, True): 0.75,
    Tile(1, 4, 1, True): 0.70, Tile(2, 4, 1, True): 0.88, Tile(3, 4, 1, True): 0.92,
    Tile(0, 12, 1, True): 0.65, Tile(0, 4, 1, True): 0.40, Tile(0, 2, 1, True): 0.20,
}  # fmt: skip
_DENSE_GPU = {
    Tile(2, 4, 1): 1.0, Tile(1, 4, 1): 0.8, Tile(2, 2, 1): 0.75, Tile(1, 2, 1): 0.55,
    Tile(2, 1, 1): 0.5, Tile(1, 1, 1): 0.3,
}  # fmt: skip

# Depthwise tiles (wide, high) by kernel side and stride; (5, ..) serves larger kernels, 0 is the
# kernel that loops over its taps.
_DEPTHWISE_32 = {
    (3, 1): {
        (5, 3): 1.0, (8, 2): 1.0, (6, 2): 0.99, (7, 2): 0.98, (13, 2): 0.96, (3, 3): 0.96,
        (4, 2): 0.95, (5, 2): 0.95, (4, 3): 0.95, (4, 4): 0.8, (13, 1): 0.7, (8, 1): 0.67,
        (4, 1): 0.6, (2, 2): 0.65, (2, 1): 0.4, (1, 2): 0.35, (1, 1): 0.25,
    },
    (3, 2): {
        (5, 3): 1.0, (4, 3): 0.96, (3, 3): 0.94, (7, 2): 0.93, (8, 2): 0.92, (6, 2): 0.91,
        (4, 2): 0.89, (5, 2): 0.9, (13, 2): 0.87, (4, 4): 0.84, (13, 1): 0.77, (8, 1): 0.75,
        (4, 1): 0.63, (2, 2): 0.7, (2, 1): 0.5, (1, 2): 0.4, (1, 1): 0.3,
    },
    (5, 1): {
        (4, 4): 1.0, (13, 1): 0.98, (8, 1): 0.96, (6, 2): 0.95, (8, 2): 0.9, (4, 3): 0.9,
        (4, 1): 0.87, (3, 3): 0.85, (2, 2): 0.75, (2, 1): 0.5, (1, 2): 0.4, (1, 1): 0.25,
    },
    (5, 2): {
        (4, 3): 1.0, (8, 2): 0.95, (4, 4): 0.93, (3, 3): 0.97, (13, 1): 0.9, (8, 1): 0.8,
        (4, 1): 0.8, (2, 2): 0.8, (2, 1): 0.5, (1, 2): 0.4, (1, 1): 0.25,
    },
    (0, 1): {(8, 1): 1.0, (4, 2): 1.0, (4, 1): 0.85, (2, 1): 0.6, (1, 1): 0.4},
}  # fmt: skip
_DEPTHWISE_SMALL = {(4, 2): 1.0, (4, 1): 0.9, (2, 2): 0.9, (2, 1): 0.7, (1, 1): 0.4}
_DEPTHWISE_GPU = {(2, 1): 1.0, (1, 1): 0.8}

# In multiply-adds of a vector: the cost of a work-item, and of finishing and storing one vector.
_WORK_ITEM = 30.0
_STORE = 5.0
_LAUNCH = 15_000.0  # cost of one more launch
_SHARED_LAUNCH = 45_000.0  # on cores that must be woken, and that wait for the last one: 12 us

_AT_ONCE = 512  # work-items that a GPU's compute unit has in flight: with fewer it waits for memory


class Split(NamedTuple):
    """Output blocks ``first`` .. ``first + tile.blocks * groups - 1`` use ``tile``."""

    tile: Tile
    first: int
    groups: int


def dense_tiles(
    blocks: int,
    width: int,
    height: int,
    depth: int,
    traits: Traits,
    widths: tuple[int, ...],
    half: bool = False,
    rows: bool = False,
) -> tuple[Split, ...]:
    """The cheapest way to cover ``blocks`` output blocks of a picture, with one launch or two.

    ``depth`` is the multiply-adds behind each output (input channels x taps); ``widths`` are
    the numbers of output blocks that a tile may hold. When widths do not divide the blocks,
    a second launch does the rest. ``half`` says that the last block is at most half full: a
    tile with a half block may compute it. ``rows``: the results of a pixel lie side by side.
    """
    table = _dense(traits, rows)
    launch = _SHARED_LAUNCH if traits.kind == "cpu" and traits.compute_units > 1 else _LAUNCH
    fits = [tile for tile in table if tile.width <= width and tile.height <= height]

    def best(wide: int, groups: int, last_half: bool = False) -> tuple[float, Tile | None]:
        if groups == 0:
            return 0.0, None
        options = (
            (_cost(tile, groups, width, height, depth, table[tile], traits), tile)
            for tile in fits
            if tile.blocks == wide and tile.half == last_half
        )
        return min(options, default=(math.inf, None))

    ends = [(rest, False) for rest in range(max(widths))]
    if half:
        ends += [(rest, True) for rest in (0, 1, 2, 3)]
    choices: list[tuple[float, tuple[Split, ...]]] = []
    for wide in widths:
        for rest, last_half in ends:
            groups, odd = divmod(blocks - rest - last_half, wide)
            if odd or groups < 0:
                continue
            cost, tile = best(wide, groups)
            more, end = best(rest, int(rest + last_half > 0), last_half)
            if math.isinf(cost + more):
                continue
            parts = (tile and Split(tile, 0, groups), end and Split(end, groups * wide, 1))
            splits = tuple(part for part in parts if part)
            choices.append((cost + more + launch * (len(splits) - 1), splits))
    return min(choices)[1]


def product_tile(blocks: int, rows: int, batch: int, depth: int, traits: Traits) -> Tile:
    """The tile (blocks of columns, rows) for ``batch`` products whose second matrices are computed:
    the columns are filled up to whole tiles, so that one launch does all."""
    table = _dense(traits, rows=True)

    def cost(tile: Tile) -> float:
        groups = batch * -(-blocks // tile.blocks)
        return _cost(tile, groups, rows, 1, depth, table[tile], traits)

    fits = (tile for tile in table if tile.width <= rows and tile.height == 1 and not tile.half)
    return min(fits, key=cost)


def few_tile(outputs: int, width: int, traits: Traits) -> Tile:
    """Tile of the few-outputs kernel: ``outputs`` accumulators a pixel."""
    if traits.kind == "gpu":
        return Tile(1, min(2, width), 1)
    room = max(1, (traits.registers - outputs - 2) // outputs)
    choices = [size for size in (8, 6, 5, 4, 3, 2, 1) if size <= min(room, width)]
    return Tile(1, min(choices, key=lambda size: (-(-width // size)) * (size + 0.5)), 1)


def planar_tile(outputs: int, width: int, height: int, traits: Traits) -> Tile:
    """Tile of the planar kernel: (output channels, vectors wide, rows)."""
    groups = -(-outputs // 4)
    each = -(-outputs // groups)
    room = 6 if traits.kind == "gpu" else traits.registers - each - 2

    def cost(shape: tuple[int, int]) -> float:
        wide, high = shape
        cells = wide * high * each
        items = -(-width // (wide * traits.block)) * -(-height // high)
        return items * (max(cells, 8) + high / 2 + 1)

    shapes = [(4, 1), *((1, high) for high in (1, 2, 3, 4, 6, 8)), *((2, n) for n in (1, 2, 3, 4))]
    fits = [
        (wide, high)
        for wide, high in shapes
        if wide * traits.block <= width and high <= height and wide * high * each <= room
    ]
    return Tile(each, *min(fits or [(1, 1)], key=cost))


def depthwise_tile(taps: int, stride: int, width: int, height: int, traits: Traits) -> Tile:
    """Tile of the depthwise kernel; ``taps`` 0 is the kernel that loops over its taps."""
    if traits.kind == "gpu":
        table = _DEPTHWISE_GPU
    elif traits.registers < 32:
        table = _DEPTHWISE_SMALL
    elif taps == 0:
        table = _DEPTHWISE_32[0, 1]
    else:
        table = _DEPTHWISE_32[3 if taps <= 3 else 5, min(stride, 2)]
    depth = max(taps, 2) ** 2

    def cost(shape: tuple[int, int]) -> float:
        wide, high = shape
        return -(-width // wide) * -(-height // high) * (wide * high * depth / table[shape] + 5)

    wide, high = min((s for s in table if s[0] <= width and s[1] <= height), key=cost)
    return Tile(1, wide, high)


def _dense(traits: Traits, rows: bool) -> dict[Tile, float]:
    """The speeds of tiles; ``rows``: the results of a pixel lie side by side."""
    if traits.kind == "gpu":
        return _DENSE_GPU
    if traits.registers < 32:
        return _DENSE_16
    return _ROWS_32 if rows else _DENSE_32


def _cost(
    tile: Tile, groups: int, width: int, height: int, depth: int, speed: float, traits: Traits
) -> float:
    """Vector multiply-adds on the busiest compute unit, at the speed of the best tile."""
    items = -(-width // tile.width) * -(-height // tile.height) * groups
    at_once = traits.compute_units * (_AT_ONCE if traits.kind == "gpu" else 1)
    share = -(-items // at_once)
    pixels = tile.width * tile.height
    work = (tile.blocks + tile.half / 2) * pixels * depth / speed
    return share * (work + (tile.blocks + tile.half) * pixels * _STORE + _WORK_ITEM)
