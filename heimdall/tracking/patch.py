"""A piece of the picture that moves as one, known by the points on it.

Its movement is fitted between its own frame and the newest, never summed up frame by frame, so
that it does not drift while points of its own frame are still followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import cv2
import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.flow import Tracks, common

TINY = 1e-9  # pixels squared
LEAST_POINTS = 4  # fewer say nothing reliable about roll and scale
TOLERANCE = 0.006  # of the picture's longer side: what a point may be off by
ITERATIONS = 60
GROWTH = (0.2, 5.0)  # a scale beyond this is a wrong fit

Inside = Callable[[np.ndarray], np.ndarray]  # points (n, 2) of the own frame -> bool (n,)

STILL = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


class Patch:
    """The points of ``tracks`` that are ``inside``, and where they have gone since.

    ``transform`` (2, 3) leads pixels of the frame of ``tracks`` to the newest one: a similarity
    (shift, roll, scale) by RANSAC; points that move otherwise have no say. Points that appear on
    the piece later are added, at the place where they would have been.
    """

    def __init__(self, tracks: Tracks, inside: Inside, tolerance: float) -> None:
        chosen = inside(tracks.points)
        self.transform = STILL
        self._inside, self._tolerance = inside, tolerance
        self._ids, self._own = tracks.ids[chosen], tracks.points[chosen]
        self._seen = tracks.ids[-1] if len(tracks.ids) else -1

    def follow(self, tracks: Tracks) -> None:
        """Update ``transform`` to the frame of ``tracks``; it stays where points are too few."""
        mine, theirs = common(self._ids, tracks.ids)
        self._ids, self._own = self._ids[mine], self._own[mine]
        fitted = similarity(self._own, tracks.points[theirs], self._tolerance)
        if fitted is not None:
            self.transform = fitted
            self._adopt(tracks)

    def _adopt(self, tracks: Tracks) -> None:
        fresh = tracks.ids > self._seen
        if not fresh.any():
            return
        own = moved(cv2.invertAffineTransform(self.transform), tracks.points[fresh])
        chosen = self._inside(own)
        self._ids = np.concatenate([self._ids, tracks.ids[fresh][chosen]])
        self._own = np.concatenate([self._own, own[chosen]])
        self._seen = tracks.ids[-1]


class Anchor:
    """A point of the world that virtual content is pinned to: it goes where the picture goes.

    Read ``at`` (x, y in pixels of the picture being drawn), ``scale`` (1: as when it was pinned)
    and ``roll`` (degrees, clockwise on the screen) each frame, or lead points along with
    ``carry``. Forget the object and it is followed no longer.
    """

    def __init__(self, point: tuple[float, float]) -> None:
        self.origin = (float(point[0]), float(point[1]))
        self.transform = STILL  # from the frame in which it was pinned to the newest

    @property
    def pose(self) -> Pose | None:
        """The patch's place in the world, where that is known: here it is not."""
        return None

    @property
    def at(self) -> tuple[float, float]:
        """Where the point is now."""
        x, y = moved(self.transform, np.array([self.origin]))[0]
        return float(x), float(y)

    @property
    def scale(self) -> float:
        """How many times larger the world looks there than when it was pinned."""
        return math.hypot(self.transform[0, 0], self.transform[1, 0])

    @property
    def roll(self) -> float:
        """Degrees that the picture has turned there since, clockwise."""
        return math.degrees(math.atan2(self.transform[1, 0], self.transform[0, 0]))

    def carry(self, points: np.ndarray) -> np.ndarray:
        """Pixels (n, 2) of the picture in which it was pinned, where they are now, float32."""
        return moved(self.transform, points)


def similarity(own: np.ndarray, now: np.ndarray, tolerance: float) -> np.ndarray | None:
    """The similarity (2, 3) that leads most points ``own`` (n, 2) to ``now``; None: there is no
    reliable one."""
    if len(own) < LEAST_POINTS:
        return None
    fitted, agree = cv2.estimateAffinePartial2D(
        own, now, ransacReprojThreshold=tolerance, maxIters=ITERATIONS, refineIters=0
    )
    if fitted is None or agree.sum() < LEAST_POINTS:
        return None
    chosen = agree[:, 0] > 0
    fitted = _least_squares(own[chosen], now[chosen])
    scale = math.hypot(fitted[0, 0], fitted[1, 0])
    return fitted if GROWTH[0] < scale < GROWTH[1] else None


def _least_squares(own: np.ndarray, now: np.ndarray) -> np.ndarray:
    """The similarity (2, 3) that leads ``own`` (n, 2) best to ``now``. With points as complex
    numbers it is ``turn * z + shift``; OpenCV's own refinement takes five times as long."""
    z, w = own.view(np.complex64)[:, 0], now.view(np.complex64)[:, 0]
    middle, there = complex(z.mean()), complex(w.mean())
    spread = z - middle
    turn = complex(np.vdot(spread, w - there)) / max(float(np.vdot(spread, spread).real), TINY)
    shift = there - turn * middle
    return np.array([[turn.real, -turn.imag, shift.real], [turn.imag, turn.real, shift.imag]])


def moved(transform: np.ndarray, points: np.ndarray) -> np.ndarray:
    """``points`` (n, 2) under an affine ``transform`` (2, 3), float32."""
    return (points @ transform[:, :2].T + transform[:, 2]).astype(np.float32)


def chained(first: np.ndarray, then: np.ndarray) -> np.ndarray:
    """The affine transform (2, 3) that does ``first``, then ``then``."""
    return then @ np.vstack([first, (0.0, 0.0, 1.0)])
