"""A room whose tracker is told what it finds, and frames that are shown in it.

The room: a table, its top level with z = 0, metres. The map has it in other axes, and in units of
``UNIT`` metres.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heimdall.capture import Camera, DevicePose, Frame, Motion, Pose
from heimdall.tracking import World
from heimdall.tracking.pose import Tracking
from heimdall.tracking.slam.found import FoundPlane, Planes
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.picture import Picture


def seen_from(
    where: tuple[float, float, float], at: tuple[float, float, float] = (0, 0, 0)
) -> Pose:
    """World to camera at ``where``, looking ``at`` a point, z up in the picture."""
    forward = np.subtract(at, where) / np.linalg.norm(np.subtract(at, where))
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right = right / np.linalg.norm(right)
    turned = np.stack([right, np.cross(forward, right), forward])
    return Pose(turned, -turned @ np.asarray(where, float))


LENS = Camera.guess(640, 480)
UNIT = 0.8
HEIGHT = 0.6  # of the camera above the table, at first
FIRST = seen_from((0.0, -0.7, HEIGHT))
SECOND = seen_from((0.3, -0.6, 0.5))
TO_MAP = Pose.of(np.array([0.4, 1.1, -0.3]), np.array([2.0, 1.0, -0.5]))  # axes, metres
FRAME_NS = 33_333_333
OTHER = Pose.of(np.array([0.01, -0.02, 0.03]), np.array([0.04, 0.02, -0.05]))
EMPTY = np.zeros((480, 640), np.uint8)


def in_map(pose: Pose) -> Pose:
    """World to camera, as map to camera."""
    moved = pose.after(TO_MAP.inverse)
    return Pose(moved.rotation, moved.translation / UNIT)


def points_in_map(points: np.ndarray) -> np.ndarray:
    return TO_MAP.to_camera(points) / UNIT


def table(number: int = 0, reach: float = 0.4, lift: float = 0.0) -> FoundPlane:
    """The table's top as the mapper finds it, so far around the origin."""
    axes = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # y up, z to the camera
    pose = Pose(TO_MAP.rotation @ axes, points_in_map(np.array([0, 0, lift])))
    size = 2 * reach / UNIT
    corners = size / 2 * np.array([[-1, -1], [-1, 1], [1, 1], [1, -1.0]])
    return FoundPlane(number, pose, (size, size), "horizontal", np.arange(200), 0.001, corners)


def planes(*found: FoundPlane) -> Planes:
    return Planes(found, TO_MAP.rotation @ np.array([0.0, 0, 1]))


class StandIn:
    """Follows what it is told; its map has two keyframes, and points on the table."""

    def __init__(self) -> None:
        self.reason, self.closed = "", 0
        self.where: list[Pose | str] = []
        self.map = self.new_map()

    def new_map(self) -> Map:
        known = Map()
        for number, pose in enumerate((FIRST, SECOND)):
            none = np.empty(0, int), np.empty((0, 2)), np.empty((0, 2))
            known.add(Keyframe(number, Picture(EMPTY, LENS), in_map(pose), *none))
            known.keyframes[number].depth = 1.0
        x, y = (each.ravel() for each in np.meshgrid(np.linspace(-0.4, 0.4, 15),
                                                     np.linspace(-0.4, 0.4, 15)))  # fmt: skip
        known.points.reach(len(x))
        known.points.position[: len(x)] = points_in_map(np.stack([x, y, 0 * x], axis=1))
        known.points.spread[: len(x)] = 0.01
        return known

    def advance(self, image, camera, sequence=0, at_s=None):
        where = self.where.pop(0)
        if isinstance(where, str):
            self.reason = where
            return Tracking(sequence, "lost", in_map(FIRST), focal=self.map.times)
        return Tracking(sequence, "tracked", where, where, focal=self.map.times)

    def find(self, *found: FoundPlane) -> None:
        """The mapper has found planes."""
        self.map.planes = planes(*found)
        self.map.number += 1

    def adjust(self, moved: Pose) -> None:
        """All of the map has moved, before the cameras."""
        for each in self.map.keyframes.values():
            each.pose = each.pose.after(moved)
        points = self.map.points
        points.position[:] = moved.inverse.to_camera(points.position)
        self.map.number += 1

    def forget(self) -> None:
        self.map = self.new_map()

    def close(self) -> None:
        self.closed += 1


class Run:
    """A world, and the frames that are shown in it."""

    def __init__(self, **declared) -> None:
        self.tracker, self.world = StandIn(), World(**declared)
        self.world.begin(self.tracker)
        self.number = 0
        self.motion: Motion | None = None
        self.device: DevicePose | None = None

    def show(self, where: Pose | str = FIRST, count: int = 1) -> World:
        """A camera at a place of the room; or why there is none."""
        for _ in range(count):
            self.tracker.where.append(in_map(where) if isinstance(where, Pose) else where)
            self.look()
        return self.world

    def look(self) -> World:
        image, lens = np.zeros((480, 640, 3), np.uint8), LENS.sensing(self.motion)
        lens = replace(lens, device=self.device)
        frame = Frame(image, self.number, self.number * FRAME_NS, lens)
        self.world.thread.hand(frame)
        assert self.world.thread.settle()
        self.world.show(frame, 1 + frame.captured_ns)
        self.number += 1
        return self.world


def pixel(point: tuple[float, float, float], pose: Pose = FIRST) -> tuple[float, float]:
    """Where a point of the room is in the picture."""
    x, y = LENS.pixels(pose.to_camera(np.array([point])))[0]
    return float(x), float(y)
