"""Textures made from arrays, sent again only when the array is another one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import moderngl
import numpy as np

from heimdall.render.layout import Extent

_KEPT = 8
MASK_EDGE = (0.35, 0.65)  # probabilities between which a mask fades in (shaders/mask.frag)


class _Releasable(Protocol):
    def release(self) -> None: ...


T = TypeVar("T", bound=_Releasable)


class TextureCache(Generic[T]):
    """``get(array)`` is the texture that ``make(array)`` once made of this very array.

    The array object is the version: results of networks are new arrays, never changed in place.
    The last eight are kept; each entry holds its array, so an id is not used twice.
    """

    def __init__(self, make: Callable[[np.ndarray], T]):
        self._make = make
        self._kept: OrderedDict[int, tuple[np.ndarray, T]] = OrderedDict()

    def get(self, array: np.ndarray) -> T:
        key = id(array)
        if key in self._kept:
            self._kept.move_to_end(key)
        else:
            self._kept[key] = (array, self._make(array))
        return self._kept[key][1]

    def trim(self) -> None:
        """Release all but the newest; call when no recorded layer waits for a texture."""
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)[1][1].release()


def smooth(ctx: moderngl.Context, pixels: np.ndarray, components: int) -> moderngl.Texture:
    """A bilinear texture of (h, w) or (h, w, components) uint8, clamped at its edges: on
    llvmpipe a repeating one costs 1.4 times as much to sample."""
    height, width = pixels.shape[:2]
    texture = ctx.texture((width, height), components, np.ascontiguousarray(pixels), alignment=1)
    texture.repeat_x = texture.repeat_y = False
    return texture


class MaskTexture:
    """A mask's probabilities as a texture, and the part of the picture where it is likely."""

    def __init__(self, ctx: moderngl.Context, values: np.ndarray):
        self._texture = smooth(ctx, (np.clip(values, 0, 1) * 255).astype(np.uint8), 1)
        self.extent = _likely(values)

    def use(self, unit: int) -> None:
        """Bind the texture."""
        self._texture.use(unit)

    def release(self) -> None:
        """Free the texture."""
        self._texture.release()


def _likely(values: np.ndarray) -> Extent:
    """Where a mask can be visible: cells above its lower threshold and their neighbours."""
    likely = values > MASK_EDGE[0]
    if not likely.any():
        return 0.0, 0.0, 0.0, 0.0
    rows, columns = (np.flatnonzero(likely.any(axis=axis)) for axis in (1, 0))
    height, width = values.shape
    return (
        (columns[0] - 1) / width,
        (rows[0] - 1) / height,
        (columns[-1] + 2) / width,
        (rows[-1] + 2) / height,
    )
