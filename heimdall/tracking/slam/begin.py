"""How a map begins: points of one picture followed until the camera has moved enough."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.pose import Pose
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
NEAR_PX, FLAT = 2.5, 0.8  # from where a homography has a point; a share of all points
PATIENCE = 15  # tries: half of those that follow are by other lenses
OTHER_LENSES = (1.0, 1.35, 1.0, 0.74)


@dataclass(frozen=True, eq=False)
class Begun:
    """The first two keyframes, and the points (n, 3) of the first, NaN where not known; by a lens
    that is ``times`` as long as it was taken to be."""

    first: Keyframe
    now: Keyframe
    points: np.ndarray
    times: float = 1.0


class Beginning:
    """Follows the corners of ``picture``; ``usable``: whether there are enough of them yet."""

    def __init__(self, picture: Picture) -> None:
        there = corners(picture, np.empty((0, 2)), POINTS)
        still = Pose(np.eye(3), np.zeros(3))
        self._first = Keyframe(0, picture, still, np.arange(len(there)), there, there)
        self._first.observe(np.arange(len(there)), there)
        self._now = there.copy()
        self._looks: list[np.ndarray] = []
        self._frames = self._tries = 0
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
        self._tries += 1
        late = self._tries > PATIENCE
        times = OTHER_LENSES[self._tries % len(OTHER_LENSES)] if late else 1.0
        if times != 1 and self._is_flat(seen, NEAR_PX / picture.lens.fx):
            return None
        looks = [each / times for each in self._looks]
        begun = start(self._first.seen / times, looks, picture.lens.fx * times)
        if isinstance(begun, str):
            return None
        self._first.zoom(times)
        picture = picture.zoomed(times)
        points = np.where(begun.agree[:, None], begun.points, np.nan)
        self._first.depth = float(np.nanmedian(points[:, 2]))
        now = Keyframe(1, picture, begun.poses[-1], at[found], there[found], there[found])
        now.observe(at[found], there[found])
        depth = begun.poses[-1].to_camera(points)[:, 2]
        now.depth = float(np.nanmedian(depth))
        return Begun(self._first, now, points, times)

    def _is_flat(self, seen: np.ndarray, near: float) -> bool:
        """True if one homography leads from the first look to this: a turn does, too, which by a
        wrong lens looks like a movement before a plane."""
        both = np.isfinite(seen[:, 0])
        _, inside = cv2.findHomography(self._first.seen[both], seen[both], cv2.RANSAC, near)
        return inside is None or float(inside.mean()) > FLAT
