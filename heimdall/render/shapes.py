"""2D vector shapes: every line, disc, box and panel is a *bar* with rounded corners.

A bar is one row of ten floats in surface pixels, y down: centre (2), half of its long axis as a
vector (2), half its width, its corner radius, and RGBA. A line with round caps, a disc (zero
axis) and a panel are bars, so one draw shows them all, and its fragment shader
smooths the edges from the distance to them: no multisampling, which costs a software GPU four
times the memory traffic.
"""

from __future__ import annotations

from collections.abc import Sequence

import moderngl
import numpy as np

from heimdall.errors import AppError
from heimdall.render.programs import Programs

Color = str | Sequence[float]
FLOATS = 10
_ATTRIBUTES = {
    "bars": ("2f 2f 2f 4f", "in_centre in_axis in_width_radius in_color"),
    "glyphs": ("4f 2f 4f", "in_place in_texel in_color"),
    "rects": ("4f 4f", "in_place in_color"),
}


def rgba(color: Color) -> tuple[float, float, float, float]:
    """``"#rrggbb"``, ``"#rrggbbaa"``, or three or four numbers in 0..1, as four numbers."""
    try:
        if isinstance(color, str):
            digits = bytes.fromhex(color.removeprefix("#"))
            values = [byte / 255 for byte in digits]
        else:
            values = [float(value) for value in color]
    except (TypeError, ValueError, OverflowError):
        values = []
    if len(values) == 3:
        values.append(1.0)
    if len(values) != 4 or not all(0 <= value <= 1 for value in values):
        raise AppError(f"color {color!r}: give '#rrggbb', '#rrggbbaa' or 3-4 numbers in 0..1")
    return values[0], values[1], values[2], values[3]


def lines(starts: np.ndarray, ends: np.ndarray, width: float, color: Color) -> np.ndarray:
    """Lines with round caps from starts (n, 2) to ends (n, 2)."""
    starts, ends = np.asarray(starts, np.float32), np.asarray(ends, np.float32)
    axis = (ends - starts) / 2
    length = np.linalg.norm(axis, axis=1, keepdims=True)
    unit = np.where(length > 1e-6, axis / np.maximum(length, 1e-6), np.array([1, 0], np.float32))
    rows = np.empty((len(starts), FLOATS), np.float32)
    rows[:, 0:2] = (starts + ends) / 2
    rows[:, 2:4] = unit * (length + width / 2)
    rows[:, 4:6] = width / 2
    rows[:, 6:] = rgba(color)
    return rows


def outline(corners: np.ndarray, width: float, color: Color) -> np.ndarray:
    """The closed polygon through corners (n, 2)."""
    corners = np.asarray(corners, np.float32)
    return lines(corners, np.roll(corners, -1, axis=0), width, color)


def discs(centres: np.ndarray, radius: float, color: Color) -> np.ndarray:
    """Filled circles around centres (n, 2)."""
    centres = np.asarray(centres, np.float32).reshape(-1, 2)
    return lines(centres, centres, 2 * radius, color)


def panel(
    left: float, top: float, right: float, bottom: float, radius: float, color: Color
) -> np.ndarray:
    """A filled rectangle with rounded corners, as one row."""
    half_w, half_h = (right - left) / 2, (bottom - top) / 2
    radius = min(radius, half_w, half_h)
    row = (left + half_w, top + half_h, half_w, 0, half_h, radius, *rgba(color))
    return np.array([row], np.float32)


class Quads:
    """Draws rows of floats as quads, every row repeated for its four corners.

    Instanced drawing would send a quarter of the data, but software GPUs run their vertex
    pipeline once an instance.
    """

    def __init__(self, ctx: moderngl.Context, programs: Programs, kind: str):
        """``kind``: "bars", "glyphs" (see `glyphs`), or "rects", rows of left, top, width, height
        and RGBA."""
        self._ctx, self._program = ctx, programs[kind]
        self._layout, names = _ATTRIBUTES[kind]
        self._names = names.split()
        self._reserve(64)

    def _reserve(self, rows: int) -> None:
        floats = sum(int(part[:-1]) for part in self._layout.split())
        self._rows = rows
        self._buffer = self._ctx.buffer(reserve=rows * floats * 16, dynamic=True)
        corners = 4 * np.arange(rows, dtype=np.uint32)[:, None]
        self._index = self._ctx.buffer(corners + np.array([0, 1, 2, 2, 1, 3], np.uint32))
        content = [(self._buffer, self._layout, *self._names)]
        self._array = self._ctx.vertex_array(self._program, content, self._index)

    def draw(self, rows: np.ndarray) -> None:
        """Send these rows and draw them; the buffers grow as needed."""
        if len(rows) > self._rows:
            for used in (self._array, self._buffer, self._index):
                used.release()
            self._reserve(max(len(rows), 2 * self._rows))
        self._buffer.orphan()
        self._buffer.write(np.repeat(rows.astype(np.float32, copy=False), 4, axis=0))
        if len(rows):
            self._array.render(vertices=6 * len(rows))
