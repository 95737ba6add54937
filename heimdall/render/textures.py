"""Textures made from arrays, sent again only when the array is another one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import moderngl
import numpy as np

_KEPT = 8


class TextureCache:
    """``get(array)`` is the texture that ``make(array)`` once made of this very array.

    The array object is the version: results of networks are new arrays, never changed in place.
    The last eight are kept; each entry holds its array, so an id is not used twice.
    """

    def __init__(self, make: Callable[[np.ndarray], moderngl.Texture]):
        self._make = make
        self._kept: OrderedDict[int, tuple[np.ndarray, moderngl.Texture]] = OrderedDict()

    def get(self, array: np.ndarray) -> moderngl.Texture:
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


def smooth(
    ctx: moderngl.Context, pixels: np.ndarray, components: int, mipmaps: bool = False
) -> moderngl.Texture:
    """A bilinear texture of (h, w) or (h, w, components) uint8, clamped at its edges: on
    llvmpipe a repeating one costs 1.4 times as much to sample."""
    height, width = pixels.shape[:2]
    texture = ctx.texture((width, height), components, np.ascontiguousarray(pixels), alignment=1)
    texture.repeat_x = texture.repeat_y = False
    if mipmaps:
        texture.build_mipmaps()
        texture.filter = (moderngl.LINEAR_MIPMAP_NEAREST, moderngl.LINEAR)
    return texture
