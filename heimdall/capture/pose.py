"""A rigid movement, as of the camera in the world: see `heimdall.capture.lens` for the axes."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np


@dataclass(frozen=True, eq=False)
class Pose:
    """A rigid movement from the world to the camera: ``rotation`` (3, 3), ``translation`` (3,) in
    metres, float64; a point of the world is at ``rotation @ point + translation`` before the
    camera."""

    rotation: np.ndarray
    translation: np.ndarray

    @classmethod
    def of(cls, rotation_vector: np.ndarray, translation: np.ndarray) -> Pose:
        """From a Rodrigues vector (3,), radians, and metres (3,), as ``cv2.solvePnP`` gives."""
        turned, _ = cv2.Rodrigues(np.asarray(rotation_vector, np.float64).reshape(3, 1))
        return cls(turned, np.array(translation, np.float64).reshape(3))

    @property
    def rotation_vector(self) -> np.ndarray:
        """The rotation as Rodrigues has it: its axis, as long as the angle in radians; (3,)."""
        return np.asarray(cv2.Rodrigues(self.rotation)[0]).reshape(3)

    @property
    def position(self) -> np.ndarray:
        """Where the camera stands in the world, metres; (3,)."""
        return np.asarray(-self.rotation.T @ self.translation)

    @property
    def inverse(self) -> Pose:
        """From the camera to the world."""
        return Pose(self.rotation.T, self.position)

    def to_camera(self, points: np.ndarray) -> np.ndarray:
        """Points of the world (..., 3) as the camera has them."""
        moved: np.ndarray = np.asarray(points, np.float64) @ self.rotation.T + self.translation
        return moved

    def to_world(self, points: np.ndarray) -> np.ndarray:
        """Points before the camera (..., 3) in the world."""
        return np.asarray((np.asarray(points, np.float64) - self.translation) @ self.rotation)

    def after(self, first: Pose) -> Pose:
        """``first``, then this: where ``first`` leads from another world to this one's."""
        moved = self.rotation @ first.translation + self.translation
        return Pose(self.rotation @ first.rotation, moved)
