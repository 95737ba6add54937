"""A place of the world that content keeps."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.patch import Anchor
from heimdall.tracking.world.places import NEAREST_M


class Seeing(Protocol):
    """Knows the camera that the picture being drawn is of, with its pose; None before the first.
    ``hides``: whether something of the world lies before a point (3,)."""

    @property
    def camera(self) -> Camera | None: ...

    def hides(self, point: np.ndarray) -> bool: ...


class Place(Protocol):
    """Where something is, from its own axes to the world's: that may change. ``view``: world to
    camera, of the camera that it was pinned by; None: where that was, it still is. ``known``: False
    while nothing says where it is."""

    @property
    def pose(self) -> Pose: ...

    @property
    def view(self) -> Pose | None: ...

    @property
    def known(self) -> bool: ...


class WorldAnchor(Anchor):
    """An anchor in six degrees of freedom: ``pose`` leads from its own axes (y up from what it
    stands on, metres) to the world's. In a room it goes with the map, which becomes better with
    time. For what is drawn flat, ``at``, ``scale``, ``roll`` and ``carry`` say where it is in the
    picture, as for any anchor."""

    def __init__(self, world: Seeing, at: Pose | Place) -> None:
        self._world, self._place = world, at
        self._camera = world.camera  # when it was pinned, or seen first
        super().__init__((0.0, 0.0))
        self.origin = self.at

    @property
    def pose(self) -> Pose:
        """The pose from the anchor's own axes to the world's."""
        return self._place if isinstance(self._place, Pose) else self._place.pose

    @property
    def lost(self) -> bool:
        """True once the room's map that it goes with was given up: it is not drawn then."""
        return not isinstance(self._place, Pose) and not self._place.known

    @property
    def hidden(self) -> bool:
        """True where a plane that was found in a room lies before it, as a table does before what
        stands on the floor behind: what is drawn flat there is best left out."""
        return self._world.hides(self.pose.translation)

    @property
    def at(self) -> tuple[float, float]:
        """Where the point is now."""
        x, y = self._seen(self.pose.translation[None])[0]
        return float(x), float(y)

    @property
    def scale(self) -> float:
        """How many times larger the world looks there than when it was pinned."""
        now, first = self._world.camera, self._pinned_by()
        if now is None or first is None:
            return 1.0
        return _depth(first, self.pose) / _depth(now, self.pose) * now.fx / first.fx

    @property
    def roll(self) -> float:
        """Degrees that the picture has turned there since, clockwise."""
        first = self._pinned_by()
        if first is None or first.pose is None:
            return 0.0
        right = first.pose.rotation[0] * 0.01 * _depth(first, self.pose)
        ends = self._seen(np.stack([self.pose.translation, self.pose.translation + right]))
        across, down = ends[1] - ends[0]
        return math.degrees(math.atan2(down, across))

    def carry(self, points: np.ndarray) -> np.ndarray:
        """Pixels (n, 2) of the picture in which it was pinned, where they are now, float32: as of a
        picture that faced the camera then, at this place."""
        first = self._pinned_by()
        if first is None or first.pose is None:
            return np.asarray(points, np.float32)
        facing = first.rays(np.asarray(points, np.float64)) * _depth(first, self.pose)
        return self._seen(first.pose.to_world(facing)).astype(np.float32)

    def _pinned_by(self) -> Camera | None:
        if self._camera is None:
            self._camera = self._world.camera
        view = None if isinstance(self._place, Pose) else self._place.view
        if view is not None and self._camera is not None:
            return self._camera.at(view)
        return self._camera

    def _seen(self, points: np.ndarray) -> np.ndarray:
        """Where points (n, 3) of the world are in the picture; the corner, while unknown."""
        camera = self._world.camera
        if camera is None or camera.pose is None:
            return np.zeros((len(points), 2))
        there = camera.pose.to_camera(points)
        there[:, 2] = np.maximum(there[:, 2], NEAREST_M)  # what is behind lies far outside
        return camera.pixels(there)


def _depth(camera: Camera, at: Pose) -> float:
    if camera.pose is None:
        return 1.0
    return max(float(camera.pose.to_camera(at.translation)[2]), NEAREST_M)
