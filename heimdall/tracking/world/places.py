"""Places in the world: planes, and the points of them that a ray meets.

Every place has a ``pose`` from its own axes to the world's, y up from it and z to its front, which
is how a model stands on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.pose import Pose
from heimdall.errors import ConfigError

NEAREST_M = 0.01  # before the camera
BEFORE = 0.97  # of the way: what is nearer to a point than that may be what it stands on
GRAZING = 1e-6  # sine of the angle between a ray and a plane that it never meets
LYING = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # y out of a page, z down it


@dataclass(frozen=True, eq=False)
class Plane:
    """A flat piece of the world around ``pose``, y its normal; ``size`` in metres along its x and
    z, None where it goes on. ``guessed``: how large things on it are is a guess. ``kind``:
    ``horizontal`` or ``vertical``, where that is known; ``outline`` (k, 2): x and z of the corners
    around what was seen of it, None where that is ``size``."""

    pose: Pose
    size: tuple[float, float] | None = None
    name: str = ""
    guessed: bool = False
    kind: str = "unknown"
    outline: np.ndarray | None = None

    def __post_init__(self) -> None:
        numbers = (*self.pose.rotation.ravel(), *self.pose.translation, *(self.size or (1.0, 1.0)))
        if not np.isfinite(numbers).all() or min(self.size or (1.0, 1.0)) <= 0:
            raise ConfigError(f"plane {self.name!r}: give a finite pose, and a size above 0")

    @property
    def normal(self) -> np.ndarray:
        """Its direction up, (3,)."""
        return np.asarray(self.pose.rotation[:, 1])

    def meets(self, origin: np.ndarray, ray: np.ndarray) -> float | None:
        """How many times ``ray`` (3,) it is from ``origin`` (3,) to this plane, seen from above;
        None where it never is."""
        far = self._far(origin, ray)
        if far is None or self.normal @ ray > 0:
            return None
        if far * float(np.linalg.norm(ray)) < NEAREST_M:
            return None
        return far if self._is_within(*self._own(origin + far * ray)) else None

    def hides(self, point: np.ndarray, eye: np.ndarray) -> bool:
        """Whether it lies before a point (3,), seen from an eye (3,): as far as it ``covers``, and
        from either side."""
        far = self._far(eye, point - eye)
        return far is not None and 0 < far < BEFORE and self.covers(eye + far * (point - eye))

    def covers(self, point: np.ndarray) -> bool:
        """Whether a point (3,) of the world is right above, below or in what was seen of it: its
        ``outline``, else its ``size``."""
        x, z = self._own(point)
        if self.outline is None or len(self.outline) < 3:
            return self._is_within(x, z)
        return cv2.pointPolygonTest(self.outline.astype(np.float32), (x, z), False) >= 0

    def _far(self, origin: np.ndarray, ray: np.ndarray) -> float | None:
        """How many times a ray it is to it, from either side; None along it."""
        across = float(self.normal @ ray)
        if abs(across) < GRAZING * float(np.linalg.norm(ray)):
            return None
        return float(self.normal @ (self.pose.translation - origin)) / across

    def _own(self, point: np.ndarray) -> tuple[float, float]:
        """The x and z of a point, in its axes."""
        x, _, z = self.pose.inverse.to_camera(point).tolist()
        return x, z

    def _is_within(self, x: float, z: float) -> bool:
        return self.size is None or (abs(x) <= self.size[0] / 2 and abs(z) <= self.size[1] / 2)


@dataclass(frozen=True, eq=False)
class Hit:
    """A point of the world that a ray meets: ``pose`` stands on the ``plane`` there, its front to
    the camera; ``distance`` from the camera, metres. ``instant``: no plane is known there yet; an
    anchor moves onto it once it is."""

    pose: Pose
    distance: float
    plane: Plane
    instant: bool = False

    @property
    def point(self) -> np.ndarray:
        """The point that was hit, metres, (3,)."""
        return self.pose.translation


def nearest(planes: list[Plane], origin: np.ndarray, ray: np.ndarray) -> Hit | None:
    """The first plane that a ray meets: of those in the same place, the first of the list."""
    best: tuple[float, Plane] | None = None
    for plane in planes:
        far = plane.meets(origin, ray)
        if far is not None and (best is None or far < best[0] * (1 - 1e-6)):
            best = far, plane
    if best is None:
        return None
    far, plane = best
    pose = standing(origin + far * ray, plane.normal, origin)
    return Hit(pose, far * float(np.linalg.norm(ray)), plane)


def standing(point: np.ndarray, up: np.ndarray, towards: np.ndarray) -> Pose:
    """At ``point``, y along ``up``, and z ``towards`` another point as far as that is level."""
    front = towards - point
    front = front - up * float(front @ up)
    size = float(np.linalg.norm(front))
    if size < 1e-9:  # right above: any direction
        axis = np.eye(3)[int(np.argmin(np.abs(up)))]
        front = np.cross(up, axis)
        size = float(np.linalg.norm(front))
    front = front / size
    return Pose(np.column_stack([np.cross(up, front), up, front]), np.asarray(point, np.float64))


def on_target(pose: Pose) -> Pose:
    """What stands on a target: from ``pose`` of its own axes (x right, y up the page, z out of it)
    to one with y out of it, and z down the page, to its reader."""
    return Pose(pose.rotation @ LYING, pose.translation)
