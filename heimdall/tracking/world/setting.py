"""From a map's axes and unit to the world's: metres, and where the origin lies.

Something has to say both, for one camera sees neither lengths nor the vertical: a target
(``tie``), or the level plane below the camera (``level``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.slam.found import FoundPlane

TARGET, HEIGHT, USER, GUESS, THING = "marker", "camera height", "user", "guess", "thing"
SENSORS, DEVICE = "sensors", "device"

SOURCES = (TARGET, HEIGHT, USER, GUESS, THING, SENSORS, DEVICE)  # what says the metres


@dataclass(frozen=True, eq=False)
class Setting:
    """A point of the map is at ``metres * turn @ point + move`` in the world. ``on``: the plane
    that it was set by; None before there is one. ``source``: what its metres follow from."""

    metres: float
    turn: np.ndarray
    move: np.ndarray
    on: FoundPlane | None = None
    source: str = GUESS

    def larger(self, factor: float, source: str = USER) -> Setting:
        """All of the world so many times as large about its origin, as ``source`` says."""
        return replace(self, metres=factor * self.metres, move=factor * self.move, source=source)

    def camera(self, pose: Pose) -> Pose:
        """World to camera, from map to camera."""
        turned = pose.rotation @ self.turn.T
        return Pose(turned, self.metres * pose.translation - turned @ self.move)

    def from_camera(self, pose: Pose) -> Pose:
        """Map to camera, from world to camera."""
        return Pose(
            pose.rotation @ self.turn,
            (pose.translation + pose.rotation @ self.move) / self.metres,
        )

    def place(self, pose: Pose) -> Pose:
        """A pose from own axes to the map's, to the world's."""
        return Pose(self.turn @ pose.rotation, self.points(pose.translation))

    def from_place(self, pose: Pose) -> Pose:
        """A pose from own axes to the world's, to the map's."""
        return Pose(self.turn.T @ pose.rotation, self.from_points(pose.translation))

    def points(self, points: np.ndarray) -> np.ndarray:
        """Points of the map (..., 3) in the world."""
        return np.asarray(self.metres * points @ self.turn.T + self.move)

    def from_points(self, points: np.ndarray) -> np.ndarray:
        """Points of the world (..., 3) in the map."""
        return np.asarray((points - self.move) @ self.turn / self.metres)


IN_PLACE = Setting(1.0, np.eye(3), np.zeros(3), source=TARGET)  # of no map yet
