"""The shadow that a model casts on the plane it stands on, as a small picture made once.

Under a room's light a shadow is soft, the softer the higher up what casts it is. So the low, middle
and high parts of a model are seen from above and blurred, each by its height, into one channel of
a picture; drawing moves the three apart, away from the main light. A frame draws one polygon
around them: software GL takes 12 ns for each of its pixels, and most of a rectangle's are not dark.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from heimdall.render.content.model import TRIANGLES, DrawCall, Ground

_SIDE = 96  # texels
_BANDS = (0.2, 0.5, 1.0)  # up to which share of the height
_MOST = 4000  # triangles that are looked at
_FRACTION = 4  # bits of a texel, for cv2
_FAINTEST = 8  # of 255: what is left of it is lightened, so that its end does not show
_CORNERS = 12  # of a polygon around a band


def cast(parts: Sequence[tuple[np.ndarray, DrawCall]], low: np.ndarray, high: np.ndarray) -> Ground:
    """The shadow of parts whose vertices (n, 3) are at rest there."""
    corners = [_corners(points, part) for points, part in parts if part.mode == TRIANGLES]
    height = float(high[1] - low[1])
    reach = float(max(high[0] - low[0], high[2] - low[2], 1e-3))
    margin = 0.12 * reach + 0.45 * min(height, 1.5 * reach)
    left, right = float(low[0]) - margin, float(high[0]) + margin
    back, front = float(low[2]) - margin, float(high[2]) + margin
    heights = tuple(share * min(height, 1.5 * reach) for share in (0.08, 0.3, 0.7))
    pictures = np.zeros((3, _SIDE, _SIDE), np.uint8)
    if corners:
        triangles = _largest(np.concatenate(corners))
        scale = (_SIDE << _FRACTION) / np.array([right - left, front - back])
        flat = np.rint((triangles[:, :, [0, 2]] - (left, back)) * scale).astype(np.int32)
        share = (triangles[:, :, 1].mean(axis=1) - low[1]) / max(height, 1e-6)
        which = np.searchsorted(_BANDS[:-1], share)
        for band in range(3):
            for corner in flat[which == band]:
                cv2.fillConvexPoly(pictures[band], corner, 255, cv2.LINE_AA, _FRACTION)
    texel = (right - left) / _SIDE
    for band, above in enumerate(heights):
        blur = max((0.35 * above + 0.015 * reach) / texel, 0.6)
        pictures[band] = cv2.GaussianBlur(pictures[band], (0, 0), blur)
    pictures[:, [0, -1]] = pictures[:, :, [0, -1]] = 0  # nothing goes on beyond its edges
    seen = np.maximum(pictures.astype(np.float32) - _FAINTEST, 0) * (255 / (255 - _FAINTEST))
    picture = np.ascontiguousarray(np.rint(seen).astype(np.uint8).transpose(1, 2, 0))
    outlines = tuple(_outline(picture[..., band]) for band in range(3))
    return Ground(picture, (left, back, right, front), heights, outlines)  # type: ignore[arg-type]


def _outline(band: np.ndarray) -> np.ndarray:
    """A polygon around what is dark in a band, (n, 2) in shares of the picture's sides."""
    rows, columns = np.nonzero(band)
    if not len(rows):
        return np.zeros((0, 2))
    ends = [np.stack([columns + x, rows + y], axis=1) for x in (-0.5, 1.5) for y in (-0.5, 1.5)]
    around = cv2.convexHull(np.concatenate(ends).astype(np.float32))[:, 0]
    if len(around) > _CORNERS:  # of its extreme points in some directions: their box, cut
        turns = np.arange(_CORNERS) * (2 * np.pi / _CORNERS)
        sides = np.stack([np.cos(turns), np.sin(turns)], axis=1)
        reach = (around @ sides.T).max(axis=0)
        after, beyond = np.roll(sides, -1, axis=0), np.roll(reach, -1)
        pairs = np.stack([sides, after], axis=1)
        around = np.linalg.solve(pairs, np.stack([reach, beyond], axis=1)[..., None])[..., 0]
    return np.asarray(np.clip(around / _SIDE, 0, 1), np.float64)


def _corners(points: np.ndarray, part: DrawCall) -> np.ndarray:
    """Triangles (m, 3, 3) of a part, fewer of them where it has coarser levels."""
    if part.coarser:
        coarse = part.coarser[-1]
        return np.asarray(points[coarse.vertices][coarse.indices].reshape(-1, 3, 3))
    return np.asarray(points[part.indices].reshape(-1, 3, 3))


def _largest(triangles: np.ndarray) -> np.ndarray:
    """The triangles that cover most, seen from above."""
    if len(triangles) <= _MOST:
        return triangles
    a, b, c = triangles[:, :, [0, 2]].transpose(1, 0, 2)
    u, v = b - a, c - a
    area = np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])
    return np.asarray(triangles[np.argpartition(-area, _MOST)[:_MOST]])
