"""A plane as it is told: a box around its points, its axes, and whether it has changed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.slam import flat
from heimdall.tracking.slam.flat import Cloud, Flat

HORIZONTAL, VERTICAL, UNKNOWN = "horizontal", "vertical", "unknown"
ADDED, UPDATED, MERGED, REMOVED = "added", "updated", "merged", "removed"
TURNED, MOVED = math.radians(0.5), 0.03  # a change that is told; of its size


@dataclass(frozen=True, eq=False)
class FoundPlane:
    """A plane of the map. ``pose``: from its own axes to the map's, y its normal, the origin in its
    middle; an upright one's z leads down. ``size`` along x and z, ``support``: ids of the points on
    it, ``offset_sd``: standard deviation of its place along y, ``outline`` (k, 2): the convex hull
    of its points, x and z. Lengths in the map's unit. ``id`` is its own for ever."""

    id: int
    pose: Pose
    size: tuple[float, float]
    kind: str
    support: np.ndarray
    offset_sd: float
    outline: np.ndarray

    @property
    def normal(self) -> np.ndarray:
        """To the side from which it was seen, (3,)."""
        return np.asarray(self.pose.rotation[:, 1])

    @property
    def count(self) -> int:
        """How many points are on it."""
        return len(self.support)


@dataclass(frozen=True)
class PlaneEvent:
    """What became of plane ``id``: added, updated, removed, or merged ``into`` another."""

    what: str
    id: int
    into: int | None = None


@dataclass(frozen=True, eq=False)
class Planes:
    """All planes of a map, oldest first, the vertical (None: still unknown), and what the last look
    has changed."""

    planes: tuple[FoundPlane, ...] = ()
    up: np.ndarray | None = None
    events: tuple[PlaneEvent, ...] = ()


def changed(told: FoundPlane, now: FoundPlane) -> bool:
    """True if a plane has changed so much that it shows."""
    if told.kind != now.kind:
        return True
    across = max(told.size)
    cosine = (np.trace(told.pose.rotation @ now.pose.rotation.T) - 1) / 2
    moved = float(np.linalg.norm(told.pose.translation - now.pose.translation))
    grown = max(abs(a - b) for a, b in zip(told.size, now.size, strict=True))
    return bool(cosine < math.cos(TURNED) or max(moved, grown) > MOVED * across)


def box(
    mine: Cloud, plane: Flat, before: FoundPlane | None, up: np.ndarray | None
) -> tuple[Pose, tuple[float, float], np.ndarray]:
    """A box around most of the points: its pose, size, and the hull of what is inside."""
    turned = _turned(mine, plane, before, up)
    own = (mine.points - plane.middle) @ turned  # along x, y, z
    low, high = np.percentile(own[:, [0, 2]], (5, 95), axis=0)
    middle, half = (low + high) / 2, (high - low) / 2 / 0.9  # they hold nine tenths of an even one
    centre = plane.middle + turned[:, 0] * middle[0] + turned[:, 2] * middle[1]
    around = own[:, [0, 2]] - middle
    inside = (np.abs(around) <= half).all(axis=1)
    hull = cv2.convexHull(around[inside].astype(np.float32))[:, 0].astype(np.float64)
    size = np.maximum(2 * half, 1e-6)
    return Pose(turned, centre), (float(size[0]), float(size[1])), hull


def _turned(
    mine: Cloud, plane: Flat, before: FoundPlane | None, up: np.ndarray | None
) -> np.ndarray:
    """Axes (3, 3), in columns x, y, z: of an upright plane z leads down; a level one keeps the
    direction that it had, or lies along its longer side, its front to who saw it."""
    normal = plane.normal
    if up is not None:
        return _axes(normal, -up)
    if before is not None and before.kind != VERTICAL:
        return _axes(normal, before.pose.rotation[:, 2])
    within = plane.axes()
    flat_points = flat.places(mine.points, plane).astype(np.float32)
    (_, _, degrees) = cv2.minAreaRect(flat_points)
    angle = math.radians(degrees)
    side = within[0] * math.cos(angle) + within[1] * math.sin(angle)
    across = np.cross(normal, side)
    viewer = -mine.rays.mean(axis=0)
    choices = np.array([side, -side, across, -across])
    return _axes(normal, choices[int(np.argmax(choices @ viewer))])


def _axes(normal: np.ndarray, front: np.ndarray) -> np.ndarray:
    front = front - normal * float(normal @ front)
    front = front / np.linalg.norm(front)
    return np.column_stack([np.cross(normal, front), normal, front])
