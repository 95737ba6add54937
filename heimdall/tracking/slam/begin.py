"""How a map begins: points of one picture followed until the camera has moved enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Pose
from heimdall.tracking.slam.follow import corners, follow
from heimdall.tracking.slam.model import Keyframe
from heimdall.tracking.slam.picture import Picture
from heimdall.tracking.slam.start import start

POINTS = 400
LEAST = 60
LEAST_SHARE = 0.5
LEAST_MOVED = 0.02  # of the picture's width
LOOKS_EVERY = 3
MOST_LOOKS = 40
MOST_FRAMES = 600


@dataclass(frozen=True, eq=False)
class Begun:
    """The first two keyframes, and the points (n, 3) of the first, NaN where not known."""

    first: Keyframe
    now: Keyframe
    points: np.ndarray


class Beginning:
    """Follows the corners of ``picture``; ``usable``: whether there are enough of them yet."""

    def __init__(self, picture: Picture) -> None:
        there = corners(picture, np.empty((0, 2)), POINTS)
        still = Pose(np.eye(3), np.zeros(3))
        self._first = Keyframe(0, picture, still, np.arange(len(there)), there, there)
        self._first.observe(np.arange(len(there)), there)
        self._now = there.copy()
        self._looks: list[np.ndarray] = []
        self._frames = 0
        self.usable = len(there) >= LEAST

    @property
    def size(self) -> tuple[int, int]:
        """Of the picture."""
        return self._first.picture.size

    def advance(self, picture: Picture) -> Begun | None:
        """The next picture: the beginning of a map, once it says one."""
        self._frames += 1
        at = np.arange(len(self._now))
        there, found = follow(self._first, at, self._now, picture, 3)
        count = int(found.sum())
        if count < max(LEAST, LEAST_SHARE * len(at)) or self._frames > MOST_FRAMES:
            self.usable = False
            return None
        self._now[found] = there[found]
        seen = np.full((len(at), 2), np.nan)
        seen[found] = picture.lens.rays(there[found])[:, :2]
        moved = np.linalg.norm(there[found] - self._first.pixels[found], axis=1)
        if self._frames % LOOKS_EVERY:
            return None
        self._looks = [*self._looks[-MOST_LOOKS + 1 :], seen]
        if np.median(moved) < LEAST_MOVED * picture.size[0]:
            return None
        begun = start(self._first.seen, self._looks, picture.lens.fx)
        if isinstance(begun, str):
            return None
        points = np.where(begun.agree[:, None], begun.points, np.nan)
        self._first.depth = float(np.nanmedian(points[:, 2]))
        now = Keyframe(1, picture, begun.poses[-1], at[found], there[found], there[found])
        now.observe(at[found], there[found])
        depth = begun.poses[-1].to_camera(points)[:, 2]
        now.depth = float(np.nanmedian(depth))
        return Begun(self._first, now, points)
