"""Poses without trembling: the 1 euro filter (Casiez et al., CHI 2012) on rotation and place.

A low pass whose cut-off rises with speed: still cameras are smoothed most, moving ones lag least.
Translation is that of the world's origin before the camera, which a target there says far better
than where the camera stands; its speed counts relative to the distance, as an angle.
"""

from __future__ import annotations

import math

import cv2
import numpy as np

from heimdall.capture.pose import Pose

LEAST_HZ = 1.2  # cut-off of what stands still
RISE = 250.0  # hertz that it rises, for each radian a second
SPEED_HZ = 2.0  # cut-off of the speed itself
NEAREST_M = 0.05


class Smoother:
    """Call it with each pose and its time in seconds; it gives the pose to be shown."""

    def __init__(self) -> None:
        self._shown: Pose | None = None
        self._before: Pose | None = None
        self._at_s = 0.0
        self._turning = np.zeros(3)
        self._moving = np.zeros(3)

    def forget(self) -> None:
        """Begin anew with the next pose."""
        self._shown = self._before = None
        self._turning, self._moving = np.zeros(3), np.zeros(3)

    def __call__(self, pose: Pose, at_s: float) -> Pose:
        if self._shown is None or self._before is None:
            self._shown = self._before = pose
            self._at_s = at_s
            return pose
        step_s = min(max(at_s - self._at_s, 1e-3), 1.0)
        far = max(float(np.linalg.norm(pose.translation)), NEAREST_M)
        share = _share(SPEED_HZ, step_s)
        turn = _turn(self._before, pose) / step_s
        move = (pose.translation - self._before.translation) / (far * step_s)
        self._turning += share * (turn - self._turning)
        self._moving += share * (move - self._moving)
        # Together, or content would slide: what turns also moves in the picture.
        speed = max(float(np.linalg.norm(self._turning)), float(np.linalg.norm(self._moving)))
        kept = _share(LEAST_HZ + RISE * speed, step_s)
        turned = cv2.Rodrigues(kept * _turn(self._shown, pose))[0] @ self._shown.rotation
        moved = self._shown.translation + kept * (pose.translation - self._shown.translation)
        self._shown, self._before, self._at_s = Pose(turned, moved), pose, at_s
        return self._shown


def _share(cutoff_hz: float, step_s: float) -> float:
    """The share of the newest value in a low pass of the first order."""
    angular = 2 * math.pi * cutoff_hz * step_s
    return angular / (angular + 1)


def _turn(before: Pose, after: Pose) -> np.ndarray:
    """From one rotation to the other, a Rodrigues vector."""
    return np.asarray(cv2.Rodrigues(after.rotation @ before.rotation.T)[0]).ravel()
