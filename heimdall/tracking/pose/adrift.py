"""About where the camera has gone since its pose was lost: by what is around, taken for flat.

Corners of the last picture whose pose was known are followed from frame to frame; what lies on the
target's plane, or near it, says how the camera moves. That is too rough to be reported, for
errors add up and not all of the world is a plane. It is where targets are looked for again: one
that a hand hides by half can be followed, but not found.
"""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.flow import followed
from heimdall.tracking.pose.finding import FLOW_LEVELS, FLOW_STEPS, FLOW_WINDOW, halved
from heimdall.tracking.pose.solve import refine, to_plane

POINTS, LEAST_POINTS = 90, 16
APART_PX = 7.0
MOST_FRAMES = 60  # it drifts: two seconds
REACH = 3.0  # times the distance of the origin: points farther off say little


class Adrift:
    """``keep`` each frame whose pose is known; ``advance`` with each after that."""

    def __init__(self) -> None:
        self._kept: tuple[np.ndarray, Pose] | None = None
        self._before = np.empty((0, 0), np.uint8)  # the last picture, shrunk
        self._points = np.empty((0, 3))
        self._places = np.empty((0, 2))
        self._pose: Pose | None = None
        self._frames = 0

    def keep(self, grey: np.ndarray, pose: Pose) -> None:
        """The pose of ``grey`` is known."""
        self._kept, self._pose, self._frames = (grey, pose), None, 0

    def forget(self) -> None:
        """Nothing is known any more."""
        self._kept = self._pose = None

    def advance(self, grey: np.ndarray, camera: Camera) -> Pose | None:
        """About where the camera is now; None where nothing says where."""
        if self._kept is not None:
            self._begin(*self._kept, camera)
            self._kept = None
        self._frames += 1
        if self._pose is None or self._frames > MOST_FRAMES:
            self._pose = None
            return None
        now = _shrunk(grey)
        begin, flow = self._places.astype(np.float32), (FLOW_LEVELS, FLOW_WINDOW, FLOW_STEPS)
        there, found = followed(self._before, now, begin, None, *flow)
        self._before, self._places = now, there[found].astype(np.float64)
        self._points = self._points[found]
        fit = None
        if found.sum() >= LEAST_POINTS:
            small = camera.scaled(now.shape[1], now.shape[0])
            fit = refine(small, self._points, self._places, self._pose)
        if fit is None or fit.count < LEAST_POINTS:
            self._pose = None
            return None
        self._points, self._places = self._points[fit.agree], self._places[fit.agree]
        self._pose = fit.pose
        return fit.pose

    def _begin(self, grey: np.ndarray, pose: Pose, camera: Camera) -> None:
        """Corners of the last picture that was known, where they are if all is flat."""
        self._before = _shrunk(grey)
        self._pose = None
        found = cv2.goodFeaturesToTrack(self._before, POINTS, 0.01, APART_PX)
        if found is None:
            return
        places = found[:, 0].astype(np.float64)
        rows, columns = self._before.shape[:2]
        rays = camera.scaled(columns, rows).rays(places)
        depths = to_plane(rays, pose, REACH * float(np.linalg.norm(pose.translation)))
        flat = np.isfinite(depths)
        if flat.sum() >= LEAST_POINTS:
            self._places = places[flat]
            self._points = pose.to_world(rays[flat] * depths[flat, None])
            self._pose = pose


def _shrunk(grey: np.ndarray) -> np.ndarray:
    """A picture of a quarter of the size takes a quarter of the time of one of a half, and is
    exact enough for a guess."""
    return cv2.pyrDown(halved(grey)[0])
