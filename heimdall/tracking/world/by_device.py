"""A room as a device that tracks itself knows it: its poses and planes, in metres."""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.capture.device_pose import DevicePlane, DevicePose
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.tracker import LOST, TRACKED
from heimdall.tracking.slam.found import FoundPlane, Planes
from heimdall.tracking.slam.model import Map
from heimdall.tracking.world.layout import BY_ROOM, Layout, Located
from heimdall.tracking.world.setting import DEVICE, Setting

UP = np.array([0.0, 1.0, 0.0])
# The device's y is the world's z.
SETTING = Setting(1.0, np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), np.zeros(3), source=DEVICE)
LOST_WORDS = "insufficient features"
_BEGINNING = {0: (Pose(np.eye(3), np.zeros(3)), 1.0)}  # what places hang on: nothing moves it
_A_METRE = 100  # points on a square metre, for those who count them
_SURE_M = 0.01


class ByDevice:
    """Frames of one device, in order."""

    def __init__(self) -> None:
        self._map = Map()
        self._told: dict[int, tuple[DevicePlane, FoundPlane]] = {}
        self._layout = self._laid(())
        self._last: Pose | None = None

    def located(self, said: DevicePose, sequence: int) -> Located:
        """What is known of a frame by what its device says."""
        planes = tuple(self._plane(each) for each in said.planes)
        if planes != self._layout.planes.planes:
            self._told = {each.id: self._told[each.id] for each in said.planes}
            self._layout = self._laid(planes)
        tracked = said.pose is not None
        self._last = said.pose or self._last
        return Located(
            sequence,
            TRACKED if tracked else LOST,
            self._last,
            said.pose,
            reason="" if tracked else LOST_WORDS,
            layout=self._layout,
            setting=SETTING,
            source=BY_ROOM,
        )

    def _laid(self, planes: tuple[FoundPlane, ...]) -> Layout:
        self._map.number += 1
        nowhere = np.zeros((0, 3))
        return Layout(self._map, self._map.number, _BEGINNING, nowhere, Planes(planes, UP))

    def _plane(self, said: DevicePlane) -> FoundPlane:
        """The same again, as long as the device says the same."""
        known = self._told.get(said.id)
        if known is None or not _same(known[0], said):
            known = self._told[said.id] = (said, _found(said))
        return known[1]


def _same(one: DevicePlane, other: DevicePlane) -> bool:
    outlines = np.asarray(one.outline), np.asarray(other.outline)
    return (
        one.kind == other.kind
        and outlines[0].shape == outlines[1].shape
        and np.allclose(*outlines, atol=1e-4)
        and np.allclose(one.pose.rotation, other.pose.rotation, atol=1e-4)
        and np.allclose(one.pose.translation, other.pose.translation, atol=1e-4)
    )


def _found(said: DevicePlane) -> FoundPlane:
    """As planes of a map are told: the origin in the middle, a convex outline."""
    corners = np.asarray(said.outline, np.float32)
    hull = cv2.convexHull(corners)[:, 0].astype(np.float64)
    low, high = hull.min(axis=0), hull.max(axis=0)
    middle = (low + high) / 2
    centre = said.pose.rotation @ np.array([middle[0], 0.0, middle[1]]) + said.pose.translation
    size = np.maximum(high - low, 1e-6)
    count = round(_A_METRE * float(cv2.contourArea(hull.astype(np.float32)))) + 3
    return FoundPlane(
        said.id,
        Pose(said.pose.rotation, centre),
        (float(size[0]), float(size[1])),
        said.kind,
        np.arange(count),
        _SURE_M,
        hull - middle,
    )
