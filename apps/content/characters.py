"""Heads of characters that an app puts over faces, drawn here by Pillow.

A head is drawn in *face units*: the origin lies between forehead and chin, one unit is half of a
face's width, y goes down, and the eyes and the mouth are where ``EYES`` and ``MOUTH`` say. So
five landmarks are enough to place any of them (``corners``). Pictures are drawn four times as
large and scaled down, which smooths their edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import cv2
import numpy as np
from PIL import Image, ImageDraw

from heimdall.errors import AppError, unknown

SIDE = 320  # pixels of a head's picture
EXTENT = 1.5  # face units from its middle to its edge
EYES, MOUTH = (0.0, -0.15), (0.0, 0.50)  # between the eyes; the middle of the mouth
_EYE_GAP = 0.62  # face units from eye to eye
_SMOOTH = 4

Point = tuple[float, float]


class _Brush:
    """Draws in face units; every shape is also drawn mirrored if ``both``."""

    def __init__(self) -> None:
        side = SIDE * _SMOOTH
        self.image = Image.new("RGBA", (side, side))
        self._draw = ImageDraw.Draw(self.image)
        self._unit = side / (2 * EXTENT)

    def oval(
        self, middle: Point, rx: float, ry: float, color: str, both: bool = False, turn: float = 0
    ) -> None:
        angles = np.linspace(0, 2 * np.pi, 90, endpoint=False)
        c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
        x, y = rx * np.cos(angles), ry * np.sin(angles)
        places = np.stack([middle[0] + c * x - s * y, middle[1] + s * x + c * y], axis=1)
        self.shape([(float(a), float(b)) for a, b in places], color, both)

    def shape(self, points: Sequence[Point], color: str, both: bool = False) -> None:
        self._draw.polygon(self._pixels(points), fill=color)
        if both:
            self._draw.polygon(self._pixels([(-x, y) for x, y in points]), fill=color)

    def line(self, points: Sequence[Point], width: float, color: str, both: bool = False) -> None:
        for side in (1, -1)[: 1 + both]:
            path = [(side * x, y) for x, y in points]
            self._draw.line(
                self._pixels(path), fill=color, width=round(width * self._unit), joint="curve"
            )
            for end in (path[0], path[-1]):
                self.oval(end, width / 2, width / 2, color)

    def arc(self, middle: Point, radius: Point, span: Point, width: float, color: str) -> None:
        angles = np.radians(np.linspace(*span, 40))
        path = np.array(middle) + np.stack([np.cos(angles), np.sin(angles)], axis=1) * radius
        self.line([(float(x), float(y)) for x, y in path], width, color)

    def _pixels(self, points: Sequence[Point]) -> list[Point]:
        return [((x + EXTENT) * self._unit, (y + EXTENT) * self._unit) for x, y in points]


def _eyes(brush: _Brush, color: str = "#26201d", size: float = 0.13) -> None:
    brush.oval((_EYE_GAP / 2, EYES[1]), size, size * 1.2, color, both=True)
    for side in (-1, 1):
        brush.oval((side * _EYE_GAP / 2 - 0.04, EYES[1] - 0.06), size / 3, size / 3, "#ffffff")


def _fox(brush: _Brush) -> None:
    brush.shape([(0.30, -0.62), (0.98, -1.38), (1.02, -0.22)], "#e8772e", both=True)
    brush.shape([(0.52, -0.68), (0.90, -1.12), (0.92, -0.42)], "#4a2a1c", both=True)
    brush.oval((0, 0.02), 1.02, 0.98, "#f0853a")
    brush.shape([(0.25, 0.25), (1.20, 0.18), (0.75, 0.78), (0.0, 1.22)], "#fff4e6", both=True)
    brush.oval((0.42, 0.36), 0.42, 0.36, "#fff4e6", both=True, turn=-20)
    brush.oval((0, 0.72), 0.36, 0.48, "#fff4e6")
    brush.oval((0, 0.42), 0.16, 0.12, "#2b1d18")
    brush.arc((0.14, 0.56), (0.16, 0.14), (15, 175), 0.045, "#4a2a1c")
    brush.arc((-0.14, 0.56), (0.16, 0.14), (5, 165), 0.045, "#4a2a1c")
    _eyes(brush)


def _panda(brush: _Brush) -> None:
    brush.oval((0.78, -0.82), 0.36, 0.36, "#2a2b30", both=True)
    brush.oval((0.78, -0.80), 0.18, 0.18, "#4a4b52", both=True)
    brush.oval((0, 0.08), 1.10, 1.02, "#f7f5f0")
    brush.oval((0.36, -0.12), 0.27, 0.35, "#2a2b30", both=True, turn=28)
    brush.oval((0.62, 0.42), 0.18, 0.12, "#f6b9b4", both=True)
    brush.oval((0, 0.30), 0.15, 0.10, "#2a2b30")
    brush.arc((0.13, 0.44), (0.13, 0.13), (10, 175), 0.05, "#2a2b30")
    brush.arc((-0.13, 0.44), (0.13, 0.13), (5, 170), 0.05, "#2a2b30")
    brush.oval((_EYE_GAP / 2, EYES[1]), 0.13, 0.14, "#f7f5f0", both=True)
    _eyes(brush, size=0.10)


def _cat(brush: _Brush) -> None:
    brush.shape([(0.28, -0.72), (0.86, -1.36), (1.04, -0.25)], "#8d93a5", both=True)
    brush.shape([(0.50, -0.74), (0.82, -1.10), (0.92, -0.45)], "#f2a7b5", both=True)
    brush.oval((0, 0.05), 1.06, 0.96, "#a4aabb")
    brush.line([(0.0, -0.86), (0.0, -0.50)], 0.09, "#6f7588")
    brush.line([(0.24, -0.82), (0.20, -0.54)], 0.08, "#6f7588", both=True)
    brush.line([(0.98, 0.02), (0.74, 0.06)], 0.08, "#6f7588", both=True)
    brush.line([(0.98, 0.26), (0.76, 0.24)], 0.08, "#6f7588", both=True)
    brush.oval((0.20, 0.46), 0.27, 0.22, "#e9ebf1", both=True)
    brush.shape([(-0.12, 0.26), (0.12, 0.26), (0.0, 0.38)], "#f08a9d")
    brush.arc((0.13, 0.44), (0.13, 0.15), (10, 178), 0.045, "#4b4f5e")
    brush.arc((-0.13, 0.44), (0.13, 0.15), (2, 170), 0.045, "#4b4f5e")
    for rise in (-0.12, 0.0, 0.12):
        brush.line(
            [(0.42, 0.44 + rise / 2), (1.22, 0.40 + rise * 1.6)], 0.025, "#f6f7fa", both=True
        )
    brush.oval((_EYE_GAP / 2, EYES[1]), 0.21, 0.23, "#b7e36a", both=True)
    brush.oval((_EYE_GAP / 2, EYES[1]), 0.08, 0.19, "#22251c", both=True)
    brush.oval((_EYE_GAP / 2 - 0.05, EYES[1] - 0.08), 0.04, 0.05, "#ffffff", both=True)


def _robot(brush: _Brush) -> None:
    brush.line([(0, -0.80), (0, -1.22)], 0.08, "#7b8794")
    brush.oval((0, -1.26), 0.15, 0.15, "#ff5d5d")
    brush.oval((1.02, 0.05), 0.20, 0.30, "#5f6b78", both=True)
    for inset, color in ((0.0, "#9fb0bf"), (0.10, "#c3d0da")):
        x, top, bottom, r = 1.0 - inset, -0.85 + inset, 1.12 - inset, 0.34
        brush.shape([(x, top + r), (x, bottom - r), (-x, bottom - r), (-x, top + r)], color)
        brush.shape([(x - r, top), (x - r, bottom), (r - x, bottom), (r - x, top)], color)
        for y in (top + r, bottom - r):
            brush.oval((x - r, y), r, r, color, both=True)
    brush.line([(-0.46, EYES[1]), (0.46, EYES[1])], 0.52, "#22303c")
    brush.oval((_EYE_GAP / 2, EYES[1]), 0.19, 0.19, "#19e3d0", both=True)
    brush.oval((_EYE_GAP / 2, EYES[1]), 0.10, 0.10, "#d7fffa", both=True)
    brush.line([(-0.38, MOUTH[1] + 0.05), (0.38, MOUTH[1] + 0.05)], 0.30, "#22303c")
    for x in (-0.36, -0.18, 0.0, 0.18, 0.36):
        brush.line([(x, MOUTH[1] - 0.03), (x, MOUTH[1] + 0.13)], 0.07, "#19e3d0")


def _smiley(brush: _Brush) -> None:
    brush.oval((0, 0.06), 1.10, 1.10, "#e9a91c")
    brush.oval((0, 0.05), 1.05, 1.05, "#ffd23f")
    brush.oval((0.70, 0.38), 0.17, 0.12, "#ff9d5c", both=True)
    brush.shape([(0.06, -0.38), (0.80, -0.38), (0.74, 0.06), (0.50, 0.20), (0.18, 0.14)], "#1d2230",
                both=True)  # fmt: skip
    brush.line([(-0.98, -0.36), (0.98, -0.36)], 0.09, "#1d2230")
    brush.shape([(0.16, -0.30), (0.40, -0.30), (0.28, 0.02), (0.18, -0.02)], "#4a5572")
    brush.shape([(-0.66, -0.30), (-0.42, -0.30), (-0.54, 0.04), (-0.64, -0.04)], "#4a5572")
    smile = np.radians(np.linspace(8, 172, 40))
    brush.shape(
        [(0.52 * float(np.cos(a)), 0.42 + 0.42 * float(np.sin(a))) for a in smile], "#6b2a1b"
    )
    brush.oval((0, 0.74), 0.24, 0.11, "#ff7d7d")


_HEADS: dict[str, Callable[[_Brush], None]] = {
    "fox": _fox,
    "panda": _panda,
    "cat": _cat,
    "robot": _robot,
    "smiley": _smiley,
}
CHARACTERS = tuple(_HEADS)


@cache
def character(name: str) -> np.ndarray:
    """The head of that name, RGBA uint8 (320, 320, 4), drawn once. AppError lists the known."""
    if name not in _HEADS:
        raise AppError(unknown("character", name, CHARACTERS))
    brush = _Brush()
    _HEADS[name](brush)
    small = brush.image.resize((SIDE, SIDE), Image.Resampling.BOX)
    return _rounded_by_light(np.array(small))


def _rounded_by_light(rgba: np.ndarray) -> np.ndarray:
    """Light from the upper left, so that a flat drawing looks round."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE * 2 * EXTENT - EXTENT
    light = 1.10 - 0.13 * np.hypot(x + 0.45, y + 0.55) ** 1.5
    rgb = np.clip(rgba[..., :3] * light[..., None], 0, 255).astype(np.uint8)
    # What is transparent takes its neighbours' colour: scaling mixes it into the edge.
    rgb = np.where(rgba[..., 3:] > 0, rgb, cv2.dilate(rgb, np.ones((5, 5), np.uint8)))
    return np.dstack([rgb, rgba[..., 3]])


def corners(points: np.ndarray) -> np.ndarray:
    """Where a head's picture goes on a face: its four corners (4, 2), clockwise from the top left.

    ``points`` are the five landmarks (5, 2) in pixels: eyes, nose and corners of the mouth, left
    ones in the picture first. They give position, size and roll; of the two sizes that the eyes
    and the line from eyes to mouth tell, the larger counts, for a face that turns or nods
    shortens only one.
    """
    marks = np.asarray(points, float)
    eyes, mouth = marks[:2].mean(axis=0), marks[3:].mean(axis=0)
    across, down = marks[1] - marks[0], mouth - eyes
    unit = max(np.hypot(*across) / _EYE_GAP, np.hypot(*down) / (MOUTH[1] - EYES[1]), 1e-3)
    right = across + np.array([down[1], -down[0]])  # both say where right is
    right = right / max(np.hypot(*right), 1e-6)
    below = np.array([-right[1], right[0]])
    middle = (eyes + mouth) / 2 - below * unit * (EYES[1] + MOUTH[1]) / 2
    reach = EXTENT * unit
    return np.array([middle + reach * (x * right + y * below) for x, y in _SQUARE])


_SQUARE = ((-1, -1), (1, -1), (1, 1), (-1, 1))
