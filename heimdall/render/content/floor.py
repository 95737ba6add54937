"""The plane of the world that a model stands on, and where that ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.render.content.placing import about_y
from heimdall.tracking.world.places import Plane

UNBOUNDED = (6.0, 6.0)  # metres that are drawn of a plane without a size
APART_M = 0.03  # from a plane, of what stands on it
TILTED = math.cos(math.radians(10.0))


def outline_of(plane: object) -> np.ndarray:
    """The corners around a plane, or anything with an `outline` or a `size`: its own x and z,
    metres, (k, 2)."""
    outline = getattr(plane, "outline", None)
    if outline is not None and len(outline) >= 3:
        return np.asarray(outline, np.float64)
    width, depth = getattr(plane, "size", None) or UNBOUNDED
    x, z = float(width) / 2, float(depth) / 2
    return np.array([(-x, -z), (x, -z), (x, z), (-x, z)])


def in_world(plane: Plane, flat: np.ndarray) -> np.ndarray:
    """Points of a plane, its own x and z (..., 2), in the world (..., 3)."""
    return plane.pose.to_camera(np.insert(flat, 1, 0.0, axis=-1))  # from its axes to the world's


def floor_of(at: Pose, found: Sequence[Plane], *, scale: float, yaw: float) -> np.ndarray | None:
    """Of ``found`` the plane that a model at a place stands on: the corners around it, x and z of
    the model's space, (k, 2). None where it stands on none of them."""
    under = [each for each in found if each.outline is not None and _stands(at, each)]
    if not under:
        return None
    plane = min(under, key=lambda each: _above_m(at, each))
    corners = in_world(plane, outline_of(plane))
    return np.asarray((at.inverse.to_camera(corners) @ about_y(yaw))[:, [0, 2]] / scale)


def _stands(at: Pose, plane: Plane) -> bool:
    if _above_m(at, plane) > APART_M or float(at.rotation[:, 1] @ plane.normal) < TILTED:
        return False
    return plane.covers(at.translation)


def _above_m(at: Pose, plane: Plane) -> float:
    """How far something is from a plane, on either side."""
    return abs(float(plane.pose.inverse.to_camera(at.translation)[1]))
