"""Meshes that stand still as a picture of their own, copied onto each frame.

Software GL takes 4 ms for a couch at 720p, most of it for its many small triangles, and 0.7 ms for
the copy. Besides, without depth it copies everything else of the frame faster (``pixels``). What
moves is drawn into its frame: a picture that is drawn and copied in one frame is waited for in
between, with the interpreter locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import moderngl
import numpy as np

from heimdall.render.layout import Letterbox
from heimdall.render.plate import MIX, OVER, PREMULTIPLYING, Copier
from heimdall.render.programs import Programs
from heimdall.render.stage import Piece, Stage
from heimdall.render.surface import Surface

_STEP = 0.25  # surface pixels; what moves by less stands still

_Key = tuple[object, ...]


class Kept:
    """The picture of the meshes of a frame. Main thread only."""

    def __init__(self, surface: Surface, programs: Programs, stage: Stage):
        self._surface, self._stage = surface, stage
        self._copier = Copier(surface, programs)
        self._picture: moderngl.Texture | None = None
        self._depth: moderngl.Renderbuffer | None = None
        self._target: moderngl.Framebuffer | None = None
        self._place = (0, 0, 0, 0)
        self._shown: _Key = ()
        self._last: _Key = ()
        self._pieces: list[list[Piece]] = [[], []]  # of both: no other array gets a cloth's id

    def stand_still(self, pieces: list[Piece], box: Letterbox) -> bool:
        """Whether they are where they were in the last frame, or in the picture."""
        key, last = _key(pieces, box), self._last
        self._last, self._pieces[1] = key, pieces
        return key in (last, self._shown)

    def show(self, pieces: list[Piece], box: Letterbox) -> None:
        """Have the picture show these pieces. Call it when all textures of the frame are written:
        for each that follows, software GL would wait until it has drawn them."""
        key = _key(pieces, box)
        if key == self._shown:
            return
        self._shown, self._pieces[0] = key, pieces
        surface, target = self._surface, self._fitting()
        target.use()
        target.viewport = (0, 0, *surface.size)
        corners = np.concatenate([self._stage.corners(piece, box) for piece in pieces])
        target.scissor = self._place = box.gl_part(box.extent(corners))
        target.clear()
        surface.ctx.enable_only(moderngl.BLEND)
        surface.ctx.blend_func = PREMULTIPLYING
        for piece in pieces:
            self._stage.draw(piece, box, target)

    def draw(self) -> None:
        """Copy the picture onto the surface."""
        if self._picture is not None and self._place[2] and self._place[3]:
            self._surface.ctx.blend_func = OVER
            self._copier.draw(self._picture, self._place, self._place[:2])
            self._surface.ctx.blend_func = MIX

    def _fitting(self) -> moderngl.Framebuffer:
        """A target as large as the surface."""
        size = self._surface.size
        if self._target is None or self._target.size != size:
            for old in (self._picture, self._depth, self._target):
                if old is not None:
                    old.release()
            self._picture = self._surface.pixels.texture(size)
            self._picture.filter = (moderngl.NEAREST, moderngl.NEAREST)
            self._depth = self._surface.ctx.depth_renderbuffer(size)
            self._target = self._surface.ctx.framebuffer([self._picture], self._depth)
        return self._target


def _key(pieces: Sequence[Piece], box: Letterbox) -> _Key:
    """Equal for what looks the same."""
    key: list[object] = [astuple(box)]
    for piece in pieces:
        # The pixels a cloth is made of are never changed: the array is its version.
        step = _STEP / box.zoom
        x, y, width = (round(length / step) for length in (*piece.at, piece.width))
        key += [piece.name, x, y, width, piece.yaw, id(piece.texture), piece.lift]
    return tuple(key)
