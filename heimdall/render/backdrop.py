"""The camera picture behind everything, with dark bars where its aspect leaves some.

A GPU samples it. A software GPU would take half of its frame time for that (llvmpipe at 720p on
one core: 5 of 10 ms); there OpenCV scales the picture on a CPU core, before the frame starts, and
drawing it is a copy (1 ms).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import cv2
import moderngl
import numpy as np

from heimdall.render.layout import Letterbox
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface

BARS_COLOR = (0.055, 0.06, 0.07)


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
    def draw(self, box: Letterbox) -> None:
        """Fill the surface's colours with picture and bars."""


class Sampled(Backdrop):
    """Drawn by the GPU."""

    def draw(self, box: Letterbox) -> None:
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
        target.viewport = target.scissor = (0, 0, *self._surface.size)


class Copied(Backdrop):
    """Scaled by OpenCV when it arrives, copied into the colour texture when it is drawn."""

    def __init__(self, surface: Surface, programs: Programs) -> None:
        super().__init__(surface, programs)
        self._pixels = np.empty((0, 0, 4), np.uint8)  # bottom row first, as GL counts
        self._box: Letterbox | None = None

    def load(self, image: np.ndarray, box: Letterbox) -> None:
        super().load(image, box)
        self._fit(box)
        x, y, width, height = box.gl_box()
        inside = self._pixels[y : y + height, x : x + width]
        cv2.resize(cv2.flip(self._rgba, 0), (width, height), dst=inside)

    def draw(self, box: Letterbox) -> None:
        if box != self._box:  # the surface has another size than when the picture came
            self._fit(box)
        self._surface.colour.write(self._pixels)

    def _fit(self, box: Letterbox) -> None:
        if box == self._box:
            return
        width, height = self._surface.size
        self._pixels = np.empty((height, width, 4), np.uint8)
        self._pixels[:] = [*(round(255 * level) for level in BARS_COLOR), 255]
        self._box = box
