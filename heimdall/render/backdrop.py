"""The camera picture behind everything, with dark bars where its aspect leaves some.

A GPU samples it. A software GPU would take half of its frame time for that (llvmpipe at 720p on
one core: 5 of 10 ms); there OpenCV scales the picture on a CPU core, before the frame starts, and
drawing it is a copy (1 ms). The same holds for another picture behind the people: blended by
OpenCV it takes 2 ms of a CPU core, on llvmpipe 8 ms of the GPU's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import cv2
import moderngl
import numpy as np

from heimdall.render.layout import Letterbox
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface
from heimdall.render.textures import MASK_EDGE, TextureCache, mask_textures, smooth

BARS_COLOR = (0.055, 0.06, 0.07)


@dataclass(frozen=True)
class Behind:
    """A picture, RGB uint8 (h, w, 3), that replaces the camera's where a mask, probabilities
    (h, w), is unlikely. Both are stretched over the whole picture."""

    pixels: np.ndarray
    values: np.ndarray


class Backdrop(ABC):
    """Main thread only. ``texture`` is the picture as it came, for whoever samples it again."""

    def __init__(self, surface: Surface, programs: Programs) -> None:
        self._surface = surface
        self._quad = surface.ctx.vertex_array(programs["background"], [])
        self._rgba = np.empty((0, 0, 4), np.uint8)
        self.texture: moderngl.Texture | None = None

    def load(self, image: np.ndarray, box: Letterbox) -> None:
        """Take a new picture, BGR uint8 (h, w, 3)."""
        height, width = image.shape[:2]
        if self.texture is None or self.texture.size != (width, height):
            if self.texture is not None:
                self.texture.release()
            self.texture = self._surface.ctx.texture((width, height), 4)
            self.texture.repeat_x = self.texture.repeat_y = False
            self._rgba = np.empty((height, width, 4), np.uint8)
        # OpenCV adds alpha in 0.05 ms for 640x480 and releases the interpreter lock; Mesa's own
        # conversion of three channels takes 0.45 ms and holds it.
        cv2.cvtColor(image, cv2.COLOR_BGR2RGBA, dst=self._rgba)
        self.texture.write(self._rgba)

    @abstractmethod
    def draw(self, box: Letterbox, behind: Behind | None = None) -> None:
        """Fill the surface's colours with picture and bars."""


class Sampled(Backdrop):
    """Drawn by the GPU."""

    def __init__(self, surface: Surface, programs: Programs) -> None:
        super().__init__(surface, programs)
        ctx = surface.ctx
        self._program = programs["behind"]
        self._program["u_mask"] = 1
        self._over = ctx.vertex_array(self._program, [])
        self._far = TextureCache(lambda pixels: smooth(ctx, pixels, 3))
        self._masks = mask_textures(ctx)

    def draw(self, box: Letterbox, behind: Behind | None = None) -> None:
        target = self._surface.framebuffer
        mask, target.depth_mask = target.depth_mask, False
        target.clear(*BARS_COLOR)
        target.depth_mask = mask
        if self.texture is None:
            return
        self._surface.ctx.enable_only(moderngl.NOTHING)
        self.texture.use(0)
        target.viewport = target.scissor = box.gl_box()
        self._quad.render(moderngl.TRIANGLE_STRIP, vertices=4)
        if behind is not None:
            self._draw_behind(behind)
        target.viewport = target.scissor = (0, 0, *self._surface.size)

    def _draw_behind(self, behind: Behind) -> None:
        ctx = self._surface.ctx
        ctx.enable_only(moderngl.BLEND)
        ctx.blend_func = (moderngl.SRC_ALPHA, moderngl.ONE_MINUS_SRC_ALPHA)
        self._far.get(behind.pixels).use(0)
        self._masks.get(behind.values).use(1)
        self._over.render(moderngl.TRIANGLE_STRIP, vertices=4)
        self._far.trim()
        self._masks.trim()


class Copied(Backdrop):
    """Scaled by OpenCV when it arrives, copied into the colour texture when it is drawn."""

    def __init__(self, surface: Surface, programs: Programs) -> None:
        super().__init__(surface, programs)
        self._pixels = np.empty((0, 0, 4), np.uint8)  # bottom row first, as GL counts
        self._box: Letterbox | None = None
        self._far: tuple[np.ndarray, np.ndarray] | None = None  # as given; as the picture is

    def load(self, image: np.ndarray, box: Letterbox) -> None:
        super().load(image, box)
        self._fit(box)
        self._show(self._rgba, box)

    def draw(self, box: Letterbox, behind: Behind | None = None) -> None:
        if box != self._box:  # the surface has another size than when the picture came
            self._fit(box)
        if behind is not None and self._rgba.size:
            self._show(self._blended(behind), box)
        self._surface.colour.write(self._pixels)

    def _show(self, rgba: np.ndarray, box: Letterbox) -> None:
        x, y, width, height = box.gl_box()
        inside = self._pixels[y : y + height, x : x + width]
        cv2.resize(cv2.flip(rgba, 0), (width, height), dst=inside)

    def _blended(self, behind: Behind) -> np.ndarray:
        """The camera picture, (h, w, 4), with the other one behind. Integer products: OpenCV's
        blendLinear with its float weights takes twice as long."""
        size = self._rgba.shape[1::-1]
        low, high = MASK_EDGE
        sharp = cv2.convertScaleAbs(
            np.clip(behind.values, low, high) - low, alpha=255 / (high - low)
        )
        near = cv2.merge([cv2.resize(sharp, size)] * 4)
        return cv2.add(
            cv2.multiply(self._rgba, near, scale=1 / 255),
            cv2.multiply(self._far_at(size, behind.pixels), cv2.bitwise_not(near), scale=1 / 255),
        )

    def _far_at(self, size: tuple[int, int], pixels: np.ndarray) -> np.ndarray:
        known = self._far
        if known is None or known[0] is not pixels or known[1].shape[1::-1] != size:
            scaled = cv2.resize(pixels, size, interpolation=cv2.INTER_LINEAR)
            known = self._far = (pixels, cv2.cvtColor(scaled, cv2.COLOR_RGB2RGBA))
        return known[1]

    def _fit(self, box: Letterbox) -> None:
        if box == self._box:
            return
        width, height = self._surface.size
        self._pixels = np.empty((height, width, 4), np.uint8)
        self._pixels[:] = [*(round(255 * level) for level in BARS_COLOR), 255]
        self._box = box
