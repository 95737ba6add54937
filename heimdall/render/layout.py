"""The one mapping between camera picture and screen that every layer and the mouse share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Extent = tuple[float, float, float, float]  # left, top, right, bottom; shares of the picture
Box = tuple[float, float, float, float]  # left, top, right, bottom; pixels, y down


@dataclass(frozen=True)
class Letterbox:
    """A picture centred on a surface, as large as fits, aspect ratio kept.

    ``picture`` and ``surface`` are (width, height) in pixels; ``zoom`` is surface pixels a
    picture pixel; ``left`` and ``top`` are the widths of the dark bars. All y go down.
    """

    picture: tuple[int, int]
    surface: tuple[int, int]
    zoom: float
    left: float
    top: float

    @staticmethod
    def fit(picture: tuple[int, int], surface: tuple[int, int]) -> Letterbox:
        zoom = min(surface[0] / picture[0], surface[1] / picture[1])
        left = (surface[0] - picture[0] * zoom) / 2
        top = (surface[1] - picture[1] * zoom) / 2
        return Letterbox(picture, surface, zoom, left, top)

    def to_screen(self, points: np.ndarray) -> np.ndarray:
        """Picture points (..., 2) to surface pixels."""
        return np.asarray(points, np.float32) * self.zoom + np.array(
            [self.left, self.top], np.float32
        )

    def to_picture(self, x: float, y: float) -> tuple[float, float]:
        """A surface point to picture pixels; outside the picture it lies beyond its size."""
        return (x - self.left) / self.zoom, (y - self.top) / self.zoom

    def extent(self, points: np.ndarray) -> Extent:
        """The part of the picture that holds these surface points (n, 2)."""
        shares = (points - (self.left, self.top)) / self.zoom / self.picture
        left, top = shares.min(axis=0)
        right, bottom = shares.max(axis=0)
        return float(left), float(top), float(right), float(bottom)

    def free(self, covered: Sequence[Box], margin: float) -> Box:
        """The largest part of the picture, in its pixels, that is beside all places of the surface
        that are ``covered``, and ``margin`` surface pixels away from them and from its edges; where
        there is none, the whole picture."""
        width, height = (side * self.zoom for side in self.picture)
        rest: Box = (self.left, self.top, self.left + width, self.top + height)
        for place in covered:
            rest = max(_cut(rest, place), key=_area)
        x, y = self.to_picture(rest[0] + margin, rest[1] + margin)
        right, bottom = self.to_picture(rest[2] - margin, rest[3] - margin)
        if x >= right or y >= bottom:
            return 0.0, 0.0, float(self.picture[0]), float(self.picture[1])
        return x, y, right, bottom

    def gl_part(self, extent: Extent) -> tuple[int, int, int, int]:
        """A part of the picture as ``gl_box`` gives the whole, at least those pixels."""
        x, y, width, height = self.gl_box()
        left, top, right, bottom = (min(max(share, 0.0), 1.0) for share in extent)
        start, end = int(left * width), min(int(right * width) + 1, width)
        low, high = int((1 - bottom) * height), min(int((1 - top) * height) + 1, height)
        return x + start, y + low, max(end - start, 0), max(high - low, 0)

    def gl_box(self) -> tuple[int, int, int, int]:
        """The picture's (x, y, width, height) in whole pixels, y up, as GL counts; at least one
        pixel, however thin the picture."""
        width, height = (max(1, round(side * self.zoom)) for side in self.picture)
        return round(self.left), self.surface[1] - round(self.top) - height, width, height


def _cut(box: Box, place: Box) -> list[Box]:
    """What is left of a box on each side of a place; the box itself where they do not meet."""
    x, y, right, bottom = box
    left, top, end, low = place
    if left >= right or end <= x or top >= bottom or low <= y:
        return [box]
    return [
        (end, y, right, bottom),
        (x, low, right, bottom),
        (x, y, left, bottom),
        (x, y, right, top),
    ]


def _area(box: Box) -> float:
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)
