"""Sharp text: glyphs drawn once by Pillow into an atlas, then copied pixel by pixel.

Every size has its own glyphs and positions are whole pixels, so no letter is ever scaled. A
glyph is one row of ten floats: position (2) and size (2) in surface pixels, y down, its
corner in the atlas in texels (2), and RGBA.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import moderngl
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from heimdall.errors import ConfigError
from heimdall.render.shapes import Color, rgba
from heimdall.system.paths import ASSETS

_FILES = {False: "DejaVuSans.ttf", True: "DejaVuSans-Bold.ttf"}
_WIDTH = 512
_ROWS = 2048  # of the atlas, a megabyte, until letters that are not used any more are forgotten
FLOATS = 10


@dataclass(frozen=True)
class Glyph:
    """Where a letter lies in the atlas, and where it goes relative to the pen."""

    x: int
    y: int
    width: int
    height: int
    left: int
    top: int
    advance: float


class Glyphs:
    """Text layout and the atlas texture behind it. Sizes are pixels an em. Rows are for the frame
    in which they were laid out: ``trim`` may move its letters."""

    def __init__(self, ctx: moderngl.Context):
        self._ctx = ctx
        self._most = ctx.info["GL_MAX_TEXTURE_SIZE"]  # rows
        self._texture: moderngl.Texture | None = None
        self._font, self._glyph = cache(_font), cache(self._draw)
        self._line = lru_cache(maxsize=512)(self._lay_out)  # labels repeat from frame to frame
        self._forget()

    def _forget(self) -> None:
        for known in (self._font, self._glyph, self._line):
            known.cache_clear()
        self._atlas = np.zeros((256, _WIDTH), np.uint8)
        self._fresh = False
        self._pen = [0, 0, 0]  # x, y and height of the shelf being filled
        self._needed = 0  # rows, by the first frame from now on

    def trim(self) -> None:
        """A frame is over. Forget all letters, once there are many more than a frame has: those
        that are still written are drawn again. Call it when no rows wait to be drawn."""
        rows = self._pen[1] + self._pen[2]
        self._needed = self._needed or rows
        if rows > max(_ROWS, 2 * self._needed):
            self._forget()

    def line_height(self, size: int, bold: bool) -> int:
        """Pixels from one base line to the next."""
        ascent, descent = self._font(size, bold).getmetrics()
        return ascent + descent

    def width(self, text: str, size: int, bold: bool = False) -> int:
        """Pixels from the start of ``text`` to its end."""
        return round(sum(self._glyph(letter, size, bold).advance for letter in text))

    def rows(
        self, text: str, x: float, y: float, size: int, color: Color, bold: bool = False
    ) -> np.ndarray:
        """Glyph rows of one line of text whose top left corner is (x, y)."""
        rows = self._line(text, size, bold).copy()
        rows[:, 0] += round(x)
        rows[:, 1] += round(y)
        rows[:, 6:] = rgba(color)
        return rows

    def _lay_out(self, text: str, size: int, bold: bool) -> np.ndarray:
        """Rows of a line at (0, 0), without colour."""
        rows = []
        advance = 0.0
        for letter in text:
            glyph = self._glyph(letter, size, bold)
            if glyph.width:
                place = (round(advance) + glyph.left, glyph.top, glyph.width, glyph.height)
                rows.append((*place, glyph.x, glyph.y, 0, 0, 0, 0))
            advance += glyph.advance
        return np.array(rows, np.float32).reshape(-1, FLOATS)

    def use(self, unit: int = 0) -> None:
        """Bind the atlas, sent again only if new letters came in."""
        if self._texture is None or self._texture.height != self._atlas.shape[0]:
            if self._texture is not None:
                self._texture.release()
            self._texture = self._ctx.texture(self._atlas.shape[::-1], 1, alignment=1)
            self._texture.filter = (moderngl.NEAREST, moderngl.NEAREST)
            self._fresh = True
        if self._fresh:
            self._texture.write(self._atlas)
            self._fresh = False
        self._texture.use(unit)

    def _draw(self, letter: str, size: int, bold: bool) -> Glyph:
        font = self._font(size, bold)
        left, top, right, bottom = (int(edge) for edge in font.getbbox(letter))
        width, height = right - left, bottom - top
        advance = font.getlength(letter)
        if width <= 0 or height <= 0:
            return Glyph(0, 0, 0, 0, 0, 0, advance)
        image = Image.new("L", (width, height))
        ImageDraw.Draw(image).text((-left, -top), letter, fill=255, font=font)
        x, y = self._place(width, height)
        self._atlas[y : y + height, x : x + width] = np.asarray(image)
        self._fresh = True
        return Glyph(x, y, width, height, left, top, advance)

    def _place(self, width: int, height: int) -> tuple[int, int]:
        """Room on the current shelf, else on a new one; the atlas grows downwards, so glyphs
        that are already laid out stay valid."""
        if width > _WIDTH:
            raise ConfigError(f"a letter {width} pixels wide: text of that size is not supported")
        x, y, shelf = self._pen
        if x + width > _WIDTH:
            x, y, shelf = 0, y + shelf, 0
        if y + height > self._most:
            raise ConfigError(
                f"the letters of one frame need more than {self._most} rows of a texture: write "
                "less, or in fewer sizes"
            )
        while y + height > self._atlas.shape[0]:
            self._atlas = np.vstack([self._atlas, np.zeros_like(self._atlas)])
        self._pen = [x + width, y, max(shelf, height)]
        return x, y


def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    path = ASSETS / "fonts" / _FILES[bold]
    try:
        return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        raise ConfigError(f"font {path} cannot be read ({error}); reinstall it") from error
