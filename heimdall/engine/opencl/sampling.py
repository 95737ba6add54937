"""Which source pixels an output pixel of Pad and Resize takes: tables, one an axis."""

from __future__ import annotations

import numpy as np

from heimdall.engine.opencl.lowered import Pad
from heimdall.engine.opencl.ops_picture import Gather


def gather_of(pad: Pad, height: int, width: int) -> Gather:
    """The general form of a Pad."""
    top, left, bottom, right = pad.pads
    rows = padded(height, top, bottom, pad.mode)
    return Gather(rows, padded(width, left, right, pad.mode), -pad.channels[0], pad.fill)


def padded(size: int, before: int, after: int, mode: str) -> tuple[int, ...]:
    """Source index of every index of a padded axis; -1 where a constant is stored."""
    index = np.arange(-before, size + after)
    if mode == "constant":
        index = np.where((index >= 0) & (index < size), index, -1)
    elif mode == "wrap":
        index = index % size
    elif mode == "edge":
        index = np.clip(index, 0, size - 1)
    elif size > 1:
        period = 2 * (size - 1)
        index = np.abs(index) % period
        index = np.where(index >= size, period - index, index)
    else:
        index = np.zeros_like(index)
    return tuple(int(value) for value in index)


COORDINATES = (
    *("asymmetric", "half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"),
    *("align_corners", "tf_crop_and_resize"),
)


def coordinates(
    mode: str, size: int, out: int, scale: float, span: tuple[float, float] = (0.0, 1.0)
) -> np.ndarray:
    """The source coordinate of every output index, by ONNX's ``coordinate_transformation_mode``,
    one of ``COORDINATES``. ``span`` is the part of the source that is taken: only to crop.

    In float32 as onnxruntime does it: nearest samples hang on the last bit."""
    index: np.ndarray = np.arange(out, dtype=np.float32)
    step = np.float32(scale)
    match mode:
        case "asymmetric":
            return index / step
        case "half_pixel":
            return (index + 0.5) / step - 0.5
        case "pytorch_half_pixel":
            return (index + 0.5) / step - 0.5 if out > 1 else index * 0
        case "align_corners":
            return index * ((size - 1) / (out - 1)) if out > 1 else index * 0
        case "half_pixel_symmetric":
            shift = size / 2 * (1 - out / (size * step))
            return shift + (index + 0.5) / step - 0.5
        case "tf_crop_and_resize":
            low, high = map(np.float32, span)
            if out == 1:
                return (index + 0.5) * (low + high) * (size - 1)
            return low * (size - 1) + index * (high - low) * (size - 1) / (out - 1)
    raise ValueError(f"unknown coordinates {mode!r}; choose one of {COORDINATES}")


def nearest(rounding: str, source: np.ndarray) -> np.ndarray:
    """Source coordinates to indices, by ONNX's ``nearest_mode``."""
    match rounding:
        case "floor":
            return np.floor(source)
        case "ceil":
            return np.ceil(source)
        case "round_prefer_ceil":
            return np.floor(source + 0.5)
    return np.ceil(source - 0.5)


def linear_table(source: np.ndarray, size: int) -> tuple[tuple[int, int, float], ...]:
    """(low, high, weight of high) for every source coordinate.

    Where both are the same they weigh the same: halves of a value add up to it.
    """
    clipped = np.clip(source, 0, size - 1)
    low = np.floor(clipped).astype(int)
    high = np.minimum(low + 1, size - 1)
    share = np.where(low == high, 0.5, clipped - low)
    return tuple((int(a), int(b), float(c)) for a, b, c in zip(low, high, share, strict=True))


def weighted(
    source: np.ndarray, size: int, cubic: float | None, exclude_outside: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(entries, weights) of every source coordinate, each (outputs, taps): linear, or the
    cubic of a coefficient. Entries outside repeat those at the edge, or have no weight."""
    low = np.floor(source)
    share = (source - low)[:, None]
    entries = low.astype(np.int64)[:, None] + (np.arange(2) if cubic is None else np.arange(-1, 3))
    distance = np.abs(entries - low[:, None] - share)
    if cubic is not None:
        a, near, far = cubic, distance <= 1, distance < 2
        inner = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        outer = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weights = np.where(near, inner, np.where(far, outer, 0.0))
    else:
        weights = 1 - distance
    if exclude_outside:
        weights = np.where((entries >= 0) & (entries < size), weights, 0.0)
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(entries, 0, size - 1), weights
