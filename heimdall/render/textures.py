"""Textures made from arrays, sent again only when there is something new in the array."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import cv2
import moderngl
import numpy as np

from heimdall.render.layout import Extent

_KEPT = 8
_A_LOOK = 1 << 20  # bytes that are compared in a frame: 0.05 ms
MASK_EDGE = (0.35, 0.65)  # probabilities between which a mask fades in (shaders/mask.frag)


T = TypeVar("T")  # a texture, or what holds some: it has ``release``


class Content:
    """What an array held, to notice that an app has written to it. Of a large one a part is
    compared at each look, the next one at the next: a change is seen after as many looks as it has
    megabytes. One that cannot be written to is not compared."""

    def __init__(self, array: np.ndarray):
        fixed = array.flags.owndata and not array.flags.writeable
        self._before = None if fixed else np.array(array)
        self._row = 0

    def changed(self, array: np.ndarray) -> bool:
        """Whether the array, which has the same shape, holds something else."""
        if self._before is None:
            return False
        rows = max(_A_LOOK * len(array) // max(array.nbytes, 1), 1)
        part = slice(self._row, self._row + rows)
        self._row = part.stop if part.stop < len(array) else 0
        now, before = (np.ascontiguousarray(each[part]) for each in (array, self._before))
        return cv2.norm(_flat(now), _flat(before), cv2.NORM_INF) > 0


def _flat(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(1, -1).view(np.uint8)


class _Entry(Generic[T]):
    def __init__(self, array: np.ndarray, texture: T):
        self.array, self.texture = array, texture
        self.content = Content(array)
        self.looked = self.used = True  # in this frame
        self.version = self.sent = 0  # how often it has changed


class TextureCache(Generic[T]):
    """``get(array)`` is the texture that ``make(array)`` once made of this very array, and makes
    again when the array holds something else.

    As many are kept as two frames like the last one need, and eight at least; each entry holds its
    array, so an id is not used twice. Where ``rewrite`` is given, a texture that is no longer kept
    takes the next array instead of being released; it returns False when that does not fit.
    """

    def __init__(
        self,
        make: Callable[[np.ndarray], T],
        rewrite: Callable[[T, np.ndarray], bool] | None = None,
    ):
        self._make, self._rewrite = make, rewrite
        self._kept: OrderedDict[int, _Entry[T]] = OrderedDict()
        self._spare: list[T] = []

    def get(self, array: np.ndarray) -> T:
        entry = self._kept.get(id(array))
        if entry is None:
            entry = self._kept[id(array)] = _Entry(array, self._reused(array) or self._make(array))
        self._kept.move_to_end(id(array))
        if self.version(array) != entry.sent:
            entry.sent = entry.version
            if not (self._rewrite and self._rewrite(entry.texture, array)):
                entry.texture.release()  # type: ignore[attr-defined]
                entry.texture = self._make(array)
        return entry.texture

    def version(self, array: np.ndarray) -> int:
        """How often it has changed since it was first shown. It is looked at once a frame."""
        entry = self._kept.get(id(array))
        if entry is None:
            return 0
        entry.used = True
        if not entry.looked:
            entry.looked = True
            if entry.content.changed(array):
                entry.content = Content(array)
                entry.version += 1
        return entry.version

    def _reused(self, array: np.ndarray) -> T | None:
        while self._spare and self._rewrite:
            texture = self._spare.pop()
            if self._rewrite(texture, array):
                return texture
            texture.release()  # type: ignore[attr-defined]
        return None

    def trim(self) -> None:
        """A frame is over: release what is no longer kept. Call it when no recorded layer waits for
        a texture."""
        most = max(_KEPT, 2 * sum(entry.used for entry in self._kept.values()))
        while len(self._kept) > most:
            texture = self._kept.popitem(last=False)[1].texture
            if self._rewrite:
                self._spare.append(texture)
            else:
                texture.release()  # type: ignore[attr-defined]
        for entry in self._kept.values():
            entry.looked = entry.used = False


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
