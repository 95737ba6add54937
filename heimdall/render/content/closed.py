"""Whether a surface is closed: its inside cannot be seen, and need not be drawn.

Many files say of everything that it has two sides. Of a closed surface software GL then draws the
far side before the near one hides it: 12 ms instead of 7 for 5,600 triangles on 110,000 pixels.
"""

from __future__ import annotations

import numpy as np

from heimdall.render.content.model import TRIANGLES, DrawCall

_MOST = 200_000  # triangles that are looked at: half a second


def closed(part: DrawCall) -> bool:
    """Whether each edge lies between two triangles that face the same way, outwards."""
    if part.mode != TRIANGLES or not 0 < part.triangles <= _MOST:
        return False
    points, same = np.unique(part.positions, axis=0, return_inverse=True)
    corners = same.reshape(-1)[part.indices].reshape(-1, 3).astype(np.int64)
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (c != a)]
    ends = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    there = np.sort(ends[:, 0] * len(points) + ends[:, 1])
    back = np.sort(ends[:, 1] * len(points) + ends[:, 0])
    if not len(there) or (there[1:] == there[:-1]).any() or not np.array_equal(there, back):
        return False
    at = points[corners].astype(float)
    volumes = (at[:, 0] * np.cross(at[:, 1], at[:, 2])).sum(axis=1)
    return bool((np.bincount(_pieces(ends, len(points))[corners[:, 0]], volumes) >= 0).all())


def _pieces(ends: np.ndarray, count: int) -> np.ndarray:
    """The connected piece of each point, by the least number among its points."""
    found = np.arange(count)
    while True:
        least = found.copy()
        np.minimum.at(least, ends[:, 0], found[ends[:, 1]])
        least = np.minimum(least, least[least])
        least = least[least]
        if np.array_equal(least, found):
            return found
        found = least
