"""Places in a picture: a text's height, and what is around it."""

from __future__ import annotations

import numpy as np

Box = tuple[float, float, float, float]  # left, top, right, bottom


def height(corners: np.ndarray) -> float:
    """The shorter side of an outline, corners (4, 2), pixels."""
    return float(np.linalg.norm(np.diff(corners[:3], axis=0), axis=1).min())


def around(points: np.ndarray, margin: float | tuple[float, float]) -> Box:
    """The upright box around points (n, 2), with a margin, or one across and one down."""
    left, top = (points.min(axis=0) - margin).tolist()
    right, bottom = (points.max(axis=0) + margin).tolist()
    return left, top, right, bottom


def cut(image: np.ndarray, box: Box) -> np.ndarray:
    """A copy of the part of the picture inside a box."""
    left, top, right, bottom = (max(round(float(edge)), 0) for edge in box)
    return image[top : max(bottom, top + 1), left : max(right, left + 1)].copy()


def sheet(
    page: np.ndarray, place: np.ndarray, tall: float, size: tuple[int, int], towards: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where a page is drawn, corners (4, 2), and the middle of its edge that is nearer to
    ``towards``, to which it is turned a little: around ``place``, ``tall`` of a picture of ``size``
    (width, height) in height, and all of it inside."""
    half = np.array(page.shape[1::-1]) / page.shape[0] / 2 * tall * size[1]
    middle = np.clip(place, half + 6, np.array(size) - half - 6)
    turn = 0.04 * np.sign(middle[0] - towards[0])  # the far edge looks shorter
    unit = np.array([(-1, -1 + turn), (1, -1 - turn), (1, 1 + turn), (-1, 1 - turn)])
    corners = middle + unit * half
    return corners, corners[[0, 3] if turn > 0 else [1, 2]].mean(axis=0)
