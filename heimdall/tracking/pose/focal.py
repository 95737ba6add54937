"""The focal length of a camera that was guessed, from what it sees of a flat target.

Views of a plane from several sides say what the camera is (Zhang, 2000). Pixels are taken to be
square and the picture's middle to be the centre, so one number is left, and the targets that are
followed anyway give it: each kept frame's pose is eliminated from its equations (the Schur
complement), what remains of all of them says how much longer the lens is. One frame is worked on at
a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.solve import refine, reprojected

LEAST_POINTS = 12
APART = math.radians(4.0)  # turn between kept frames
FOCAL_PX = 600.0  # outliers are told in pixels, of pictures with this guess
MOST_FRAMES, LEAST_FRAMES = 24, 8
KNOWN_SD = 0.025  # of the focal length, as a share of it: what is less sure is no knowledge
ALIKE = 0.15  # points near one another err together: they count as so many
CHANGE = 0.015  # worth a new beginning
SHORTEST, LONGEST = 0.4, 3.0  # times the guess
TINY = 1e-12


@dataclass(eq=False)
class _Kept:
    """A frame: ``points`` (n, 3) of a target and where they were seen, from the middle of the
    picture and in guessed focal lengths (n, 2); its ``pose`` at the focal length ``at``, and what
    it says of that: it is ``focal``, with that ``weight``, by ``count`` errors, whose squares are
    ``error`` in sum."""

    points: np.ndarray
    seen: np.ndarray
    pose: Pose
    at: float
    focal: float = 1.0
    weight: float = 0.0
    error: float = 0.0
    count: int = 0


class Focal:
    """``look`` at each frame in which one target is seen well; ``times`` is how many times longer
    the focal length is than the guess, 1 until that is known."""

    def __init__(self, times: float = 1.0) -> None:
        self.times = times
        self._now = self._before = times  # as far as it has converged, and a round earlier
        self._kept: list[_Kept] = []
        self._turn = 0

    def look(self, camera: Camera, points: np.ndarray, pixels: np.ndarray, pose: Pose) -> bool:
        """``camera`` is the guess. Returns True if ``times`` has changed."""
        if len(points) >= LEAST_POINTS and len(self._kept) < MOST_FRAMES and self._differs(pose):
            seen = (pixels - (camera.cx, camera.cy)) / camera.fx
            self._kept.append(_Kept(points, seen, pose, self.times))
        if len(self._kept) < LEAST_FRAMES:
            return False
        self._settle(self._kept[self._turn % len(self._kept)])
        told = [each for each in self._kept if each.count]
        self._turn += 1
        if len(told) < LEAST_FRAMES:
            return False
        weights = np.array([each.weight for each in told])
        self._now = float(np.average([each.focal for each in told], weights=weights))
        self._now = float(np.clip(self._now, SHORTEST, LONGEST))
        if self._turn % len(self._kept):
            return False
        variance = sum(each.error for each in told) / sum(each.count for each in told)
        return self._concluded(math.sqrt(variance / weights.sum() / ALIKE))

    def _differs(self, pose: Pose) -> bool:
        rotations = np.array([each.pose.rotation for each in self._kept]).reshape(-1, 3, 3)
        cosines = (np.einsum("nij,ij->n", rotations, pose.rotation) - 1) / 2
        return bool((cosines < math.cos(APART)).all())

    def _settle(self, kept: _Kept) -> None:
        """Update a frame's pose at the present focal length, and what it says of that."""
        focal = self._now * FOCAL_PX
        lens = Camera(2, 2, focal, focal, 0.0, 0.0)
        fit = refine(lens, kept.points, kept.seen * FOCAL_PX, kept.pose)
        kept.count = 0
        if fit is None or fit.count < LEAST_POINTS:
            return
        kept.pose = fit.pose
        points, seen = kept.points[fit.agree], kept.seen[fit.agree]
        off, by_pose = reprojected(
            fit.pose.rotation, fit.pose.translation, points, seen / self._now
        )
        if off is None or by_pose is None:
            return
        off, by_pose = self._now * off.ravel(), self._now * by_pose.reshape(-1, 6)
        by_focal = (seen.T.ravel() + off) / self._now
        rest = by_focal - by_pose @ np.linalg.lstsq(by_pose, by_focal, rcond=None)[0]
        kept.weight = max(float(rest @ by_focal), TINY)
        kept.focal = self._now - float(rest @ off) / kept.weight
        kept.error, kept.count = float(off @ off), len(off)

    def _concluded(self, deviation: float) -> bool:
        """All frames have been worked on once more."""
        before, self._before = self._before, self._now
        settled = abs(self._now - before) < CHANGE / 2 * self._now
        if not settled or deviation > KNOWN_SD * self._now:
            return False
        if not SHORTEST < self._now < LONGEST:
            return False
        if abs(self._now - self.times) < max(CHANGE * self.times, 2 * deviation):
            return False
        self.times = self._now
        return True


def zoomed(pose: Pose, times: float) -> Pose:
    """About what looks the same with a focal length that many times longer."""
    return Pose(pose.rotation, pose.translation * (1.0, 1.0, times))
