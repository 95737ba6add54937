"""Textures made from arrays, sent again only when the array is another one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import cv2
import moderngl
import numpy as np

from heimdall.render.layout import Extent

_KEPT = 8
MASK_EDGE = (0.35, 0.65)  # probabilities between which a mask fades in (shaders/mask.frag)


T = TypeVar("T")  # a texture, or what holds some: it has ``release``


class TextureCache(Generic[T]):
    """``get(array)`` is the texture that ``make(array)`` once made of this very array.

    The array object is the version: results of networks are new arrays, never changed in place.
    The last eight are kept; each entry holds its array, so an id is not used twice. Where
    ``rewrite`` is given, a texture that is no longer kept takes the next array instead of being
    released; it returns False when that does not fit.
    """

    def __init__(
        self,
        make: Callable[[np.ndarray], T],
        rewrite: Callable[[T, np.ndarray], bool] | None = None,
    ):
        self._make, self._rewrite = make, rewrite
        self._kept: OrderedDict[int, tuple[np.ndarray, Any]] = OrderedDict()
        self._spare: list[Any] = []

    def get(self, array: np.ndarray) -> T:
        key = id(array)
        if key in self._kept:
            self._kept.move_to_end(key)
        else:
            self._kept[key] = (array, self._reused(array) or self._make(array))
        return self._kept[key][1]

    def _reused(self, array: np.ndarray) -> T | None:
        while self._spare and self._rewrite:
            texture = self._spare.pop()
            if self._rewrite(texture, array):
                return texture
            texture.release()
        return None

    def trim(self) -> None:
        """Release all but the newest; call when no recorded layer waits for a texture."""
        while len(self._kept) > _KEPT:
            texture = self._kept.popitem(last=False)[1][1]
            if self._rewrite:
                self._spare.append(texture)
            else:
                texture.release()


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
        levels = levels_of(values)
        self._texture, self.extent = smooth(ctx, levels, 1), likely_part(levels)

    def rewrite(self, values: np.ndarray) -> bool:
        """Show another mask from now on; False where it has another size."""
        levels = levels_of(values)
        if levels.shape[::-1] != self._texture.size:
            return False
        self._texture.write(levels, alignment=1)
        self.extent = likely_part(levels)
        return True

    def use(self, unit: int) -> None:
        """Bind the texture."""
        self._texture.use(unit)

    def release(self) -> None:
        """Free the texture."""
        self._texture.release()


def mask_textures(ctx: moderngl.Context) -> TextureCache[MaskTexture]:
    """Textures of masks. A carried mask is another one each frame: they are written again."""
    return TextureCache(lambda values: MaskTexture(ctx, values), MaskTexture.rewrite)


def levels_of(values: np.ndarray) -> np.ndarray:
    """Probabilities as bytes, in half of the time that numpy takes."""
    return cv2.convertScaleAbs(np.maximum(values, 0, dtype=np.float32), alpha=255)


def likely_part(levels: np.ndarray) -> Extent:
    """Where a mask can be visible: cells above its lower threshold and their neighbours."""
    _, likely = cv2.threshold(levels, 255 * MASK_EDGE[0], 255, cv2.THRESH_BINARY)
    left, top, across, down = cv2.boundingRect(likely)
    if not across:
        return 0.0, 0.0, 0.0, 0.0
    height, width = levels.shape
    return (
        (left - 1) / width,
        (top - 1) / height,
        (left + across + 1) / width,
        (top + down + 1) / height,
    )
