"""How a depthwise and a pointwise layer in one launch share the registers and the cache."""

from __future__ import annotations

from typing import NamedTuple

from heimdall.engine.opencl.conv_tiles import Tile
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.layout import Layout

NEAR_FLOATS = 6144  # of private memory a work-item holds at most: most of a small first-level cache
_WEIGHTS = 1 << 18  # floats that every work-item reads: they should stay in the second-level cache
_FEW_OUTPUTS = 4  # layers with as few have kernels of their own
_LEAST_PIXELS = 4  # of a tile: fewer leave the multipliers waiting for weights
_HEIGHTS = 3

# Beside the multiply-adds of a pixel: what a work-item costs, and what a tile of one row costs
# more than high ones, which use each input for several rows. Chosen by hand on two AVX-512 cores.
_ITEM = 1.5
_FLAT = 0.15


class Cut(NamedTuple):
    """``tile.blocks`` outputs at a time, ``rest`` and with ``tile.half`` half a block at last."""

    tile: Tile
    rest: int


def separable_cut(inputs: int, y: Layout, traits: Traits) -> Cut:
    """The cheapest tile for a result ``y`` of ``inputs`` channels."""
    half = 0 < y.channels % traits.block <= traits.block // 2
    full = y.blocks - half
    most = (3 if traits.registers >= 32 else 2) - half
    wide = -(-full // -(-full // most)) if full else 0
    rest = full % wide if full else 0
    if half and not rest:
        rest = wide  # half a block alone would use the registers badly
    vectors = max(wide, rest + half)
    room = min((traits.registers - 1 - vectors) // vectors, _pixels(inputs, traits))

    def cost(shape: tuple[int, int]) -> float:
        width, height = shape
        items = -(-y.width // width) * -(-y.height // height)
        share = -(-items // traits.compute_units)
        return share * (width * height * (1 + _FLAT / height) + _ITEM)

    shapes = [
        (width, height)
        for height in range(1, min(_HEIGHTS, y.height) + 1)
        for width in range(1, min(room // height, y.width) + 1)
    ]
    width, height = min(shapes, key=cost)
    return Cut(Tile(wide, width, height, half), rest)


def separable_gains(inputs: int, outputs: int, traits: Traits) -> bool:
    """True if one launch for layers of so many channels is faster than two."""
    near = _pixels(inputs, traits) >= _LEAST_PIXELS
    return near and outputs > _FEW_OUTPUTS and inputs * outputs <= _WEIGHTS


def _pixels(inputs: int, traits: Traits) -> int:
    """Of so many channels private memory holds this many pixels."""
    return NEAR_FLOATS // (-(-inputs // traits.block) * traits.block)
