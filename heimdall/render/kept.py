"""Models that stand still as a picture of their own, copied onto each frame.

Software GL takes 4 ms for a couch at 720p, most of it for its many small triangles, and 0.7 ms for
the copy. Besides, without depth it copies everything else of the frame faster (``pixels``). What
moves is drawn into its frame: a picture that is drawn and copied in one frame is waited for in
between, with the interpreter locked. That is still less where frames would be late otherwise: then
models are drawn into a smaller picture, and stretched.
"""

from __future__ import annotations

from collections.abc import Sequence

import moderngl
import numpy as np

from heimdall.render.blending import OVER, PREMULTIPLYING
from heimdall.render.content.figure import Solid
from heimdall.render.content.figures import Figures
from heimdall.render.layout import Letterbox
from heimdall.render.plate import Copier
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface

_Key = tuple[object, ...]


class Kept:
    """The picture of the solids of a frame. Main thread only."""

    def __init__(self, surface: Surface, programs: Programs, figures: Figures):
        self._surface, self._figures = surface, figures
        self._copier = Copier(surface, programs)
        self._picture: moderngl.Texture | None = None
        self._depth: moderngl.Renderbuffer | None = None
        self._target: moderngl.Framebuffer | None = None
        self._place = (0, 0, 0, 0)
        self._scale = 1.0
        self._shown: _Key = ()
        self._last: _Key = ()
        self._pieces: list[Sequence[Solid]] = [[], []]  # of both: no other array gets a cloth's id

    def stand_still(self, pieces: Sequence[Solid], box: Letterbox) -> bool:
        """True if they are where they were in the last frame, or in the picture."""
        key, last = self._figures.key(pieces, box), self._last
        self._last, self._pieces[1] = key, pieces
        return key in (last, self._shown)

    def show(self, pieces: Sequence[Solid], box: Letterbox) -> None:
        """Have the picture show these pieces, with as many pixels as the figures' scale says. Call
        it when all textures of the frame are written: for each that follows, software GL would
        wait until it has drawn them."""
        key = self._figures.key(pieces, box)
        if key == self._shown:
            return
        self._shown, self._pieces[0] = key, pieces
        self._scale = self._figures.quality.scale
        target = self._fitting()
        target.use()
        target.viewport = (0, 0, *target.size)
        self._place = box.gl_part(box.extent(self._figures.corners(pieces, box)))
        left, low, right, high = _scaled(self._place, self._scale)
        target.scissor = (left, low, right - left, high - low)
        target.clear()
        self._surface.ctx.enable_only(moderngl.BLEND)
        self._surface.ctx.blend_func = PREMULTIPLYING
        for piece in pieces:
            self._figures.draw(piece, box, target)

    def rehearse(self) -> None:
        """Make the picture, and copy a pixel of it that shows nothing: drivers compile shaders when
        they are drawn with for the first time."""
        self._fitting().clear()
        self._surface.target = self._surface.flat
        self._surface.flat.use()
        self._surface.ctx.enable_only(moderngl.BLEND)
        self._place, self._shown = (0, 0, 1, 1), ()
        self.draw()

    def draw(self) -> None:
        """Copy the picture onto the surface."""
        if self._picture is not None and self._place[2] and self._place[3]:
            self._surface.ctx.blend_func = OVER
            self._copier.draw(self._picture, self._place, self._place[:2], self._scale)
            self._surface.ctx.blend_func = self._surface.mix

    def _fitting(self) -> moderngl.Framebuffer:
        """A target as large as the surface, or smaller by the scale."""
        across, down = self._surface.size
        size = max(round(across * self._scale), 1), max(round(down * self._scale), 1)
        if self._target is None or self._target.size != size:
            for old in (self._picture, self._depth, self._target):
                if old is not None:
                    old.release()
            self._picture = self._surface.pixels.texture(size)
            alike = moderngl.NEAREST if self._scale == 1 else moderngl.LINEAR
            self._picture.filter = (alike, alike)
            self._depth = self._surface.ctx.depth_renderbuffer(size)
            self._target = self._surface.ctx.framebuffer([self._picture], self._depth)
        return self._target


def _scaled(place: tuple[int, int, int, int], scale: float) -> tuple[int, int, int, int]:
    """Left, low, right and high of the smaller picture's pixels that a place is copied from, and
    one more all around."""
    x, y, width, height = place
    edge = 0 if scale == 1 else 1
    left, low = int(x * scale) - edge, int(y * scale) - edge
    right, high = int(np.ceil((x + width) * scale)), int(np.ceil((y + height) * scale))
    return max(left, 0), max(low, 0), right + edge, high + edge
