"""A sheet of text and rectangles being laid out: the pen behind panel, cards and timeline."""

from __future__ import annotations

import numpy as np

from heimdall.render import shapes
from heimdall.render.glyphs import FLOATS as GLYPH_FLOATS
from heimdall.render.glyphs import Glyphs
from heimdall.render.shapes import Color

GROUND, TRACK = "#0b0e13c8", "#ffffff26"
INK, DIM = "#f4f6f8", "#aeb6c0"
GOOD, WARN, BAD = "#4ade80", "#fbbf24", "#f87171"
RECT_FLOATS = 8


class Sheet:
    """Collects rectangle rows and glyph rows. ``unit`` is surface pixels a design pixel."""

    def __init__(self, unit: float, glyphs: Glyphs):
        self.unit = unit
        self.place = (0, 0, 0, 0)  # left, top, right, bottom on the surface
        self._glyphs = glyphs
        self._boxes: list[tuple[float, ...]] = []
        self._rows: list[np.ndarray] = []

    @property
    def rects(self) -> np.ndarray:
        """Rectangles (n, 8): left, top, width, height, RGBA; in the order of drawing."""
        return np.array(self._boxes, np.float32).reshape(-1, RECT_FLOATS)

    @property
    def letters(self) -> np.ndarray:
        """Glyph rows, drawn over the rectangles."""
        return np.concatenate([np.zeros((0, GLYPH_FLOATS), np.float32), *self._rows])

    def px(self, design: float) -> int:
        """Design pixels as whole surface pixels."""
        return round(design * self.unit)

    def _em(self, size: int) -> int:
        return max(1, self.px(size))

    def width(self, text: str, size: int, bold: bool = False) -> int:
        """How wide a text of ``size`` design pixels is, in surface pixels."""
        return self._glyphs.width(text, self._em(size), bold)

    def put(
        self, text: str, x: float, y: float, size: int, color: Color, bold: bool = False
    ) -> int:
        """Text with its top left corner at (x, y); returns the x after it."""
        self._rows.append(self._glyphs.rows(text, x, y, self._em(size), color, bold))
        return round(x) + self.width(text, size, bold)

    def put_right(
        self, text: str, right: float, y: float, size: int, color: Color, room: float
    ) -> None:
        """Text that ends at ``right`` and is at most ``room`` wide."""
        text = self.fitted(text, size, room)
        self.put(text, right - self.width(text, size), y, size, color)

    def box(self, left: float, top: float, right: float, bottom: float, color: Color) -> None:
        """A filled rectangle on whole pixels."""
        place = (round(left), round(top), round(right) - round(left), round(bottom) - round(top))
        self._boxes.append((*place, *shapes.rgba(color)))

    def ground(self, left: int, top: int, right: int, bottom: int, color: Color = GROUND) -> None:
        """The translucent ground under everything so far, its corners rounded by shorter rows;
        it is the sheet's ``place``."""
        right, bottom = max(right, left + 1), max(bottom, top + 1)  # on a surface of one pixel
        self.place = left, top, right, bottom
        radius = min(self.px(7), (bottom - top) // 2)
        width, tint = right - left, shapes.rgba(color)
        rows: list[tuple[float, ...]] = []
        for row in range(radius):
            inset = round(radius - (radius**2 - (radius - row - 0.5) ** 2) ** 0.5)
            for y in (top + row, bottom - 1 - row):
                rows.append((left + inset, y, width - 2 * inset, 1, *tint))
        rows.append((left, top + radius, width, bottom - top - 2 * radius, *tint))
        self._boxes[:0] = rows

    def fitted(self, text: str, size: int, room: float) -> str:
        """The text, cut with an ellipsis if it is wider than ``room``."""
        if self.width(text, size) <= room:
            return text
        while text and self.width(text + "…", size) > room:
            text = text[:-1]
        return text + "…"

    def wrapped(self, text: str, size: int, room: float) -> list[str]:
        """The text in lines of at most ``room``."""
        lines: list[str] = []
        for word in text.split():
            joined = f"{lines[-1]} {word}" if lines else word
            if lines and self.width(joined, size) <= room:
                lines[-1] = joined
            else:
                lines.append(self.fitted(word, size, room))
        return lines
