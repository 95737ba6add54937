"""Places in the world: planes, and the points of them that a ray meets.

Every place has a ``pose`` from its own axes to the world's, y up from it and z to its front, which
is how a model stands on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.lens import Pose
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
        down = -float(self.normal @ ray)
        if down < GRAZING * float(np.linalg.norm(ray)):
            return None
        far = float(self.normal @ (origin - self.pose.translation)) / down
        if far * float(np.linalg.norm(ray)) < NEAREST_M:
            return None
        if self.size is not None:
            own = self.pose.inverse.to_camera(origin + far * ray)
            if abs(own[0]) > self.size[0] / 2 or abs(own[2]) > self.size[1] / 2:
                return None
        return far

    def hides(self, point: np.ndarray, eye: np.ndarray) -> bool:
        """Whether it lies before a point (3,), seen from an eye (3,): with its ``outline``, and
        from either side."""
        ray = point - eye
        across = float(self.normal @ ray)
        if abs(across) < GRAZING * float(np.linalg.norm(ray)):
            return False
        far = float(self.normal @ (self.pose.translation - eye)) / across
        if not 0 < far < BEFORE:
            return False
        x, _, z = self.pose.inverse.to_camera(eye + far * ray)
        if self.outline is not None and len(self.outline) > 2:
            outline = self.outline.astype(np.float32)
            return cv2.pointPolygonTest(outline, (float(x), float(z)), False) >= 0
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
