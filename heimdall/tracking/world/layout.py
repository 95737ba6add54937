"""A room's map at one moment: what the main thread knows of it, while the tracker goes on.

A pose goes with the map that it was found in. So each frame's ``Located`` has the layout of its own
moment, and what hangs on keyframes is drawn where it belongs in that very picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.pose.tracker import Tracking
from heimdall.tracking.slam.found import Planes
from heimdall.tracking.slam.model import KNOWN, Map, away, carried
from heimdall.tracking.world.lengths import Length
from heimdall.tracking.world.setting import Setting

BY_TARGET, BY_ROOM, BY_VIEWS = "target", "room", "views"  # what says a pose


@dataclass(frozen=True, eq=False)
class Layout:
    """Keyframes, by their number: poses and depths; points (n, 3) that have a place; planes.
    ``map`` says which map that was, and is not looked into; ``times``: its own, then."""

    map: Map
    number: int
    keyframes: dict[int, tuple[Pose, float]]
    points: np.ndarray
    planes: Planes
    times: float = 1.0

    @classmethod
    def of(cls, known: Map) -> Layout:
        """As the map is now."""
        keyframes = {each.number: (each.pose, each.depth) for each in known.keyframes.values()}
        points = known.points.position[known.points.spread < KNOWN]
        return cls(known, known.number, keyframes, points, known.planes, known.times)

    def is_of(self, known: Map) -> bool:
        """True if the map is still as it was."""
        same = self.map is known and self.number == known.number
        return same and len(self.keyframes) == len(known.keyframes)

    def nearest(self, pose: Pose, among: Layout | None = None) -> int | None:
        """The keyframe that saw most nearly what a camera at ``pose`` sees; of those that ``among``
        has, too."""
        if not self.keyframes:
            return None
        turned, centres, depths = self._views
        apart = away(turned, centres, depths, pose)
        if among is not None:
            apart[[number not in among.keyframes for number in self.keyframes]] = np.inf
        best = int(np.argmin(apart))
        return list(self.keyframes)[best] if np.isfinite(apart[best]) else None

    @cached_property
    def _views(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        poses = [pose for pose, _ in self.keyframes.values()]
        depths = np.array([depth for _, depth in self.keyframes.values()])
        return np.stack([p.rotation for p in poses]), np.stack([p.position for p in poses]), depths

    def carried(self, pose: Pose, to: Layout) -> Pose:
        """A camera's pose in this layout as it is in another one of the same map: it goes with the
        keyframe that it is nearest to."""
        if to is self or to.map is not self.map:
            return pose
        number = self.nearest(pose, to)
        if number is None:
            return pose
        before, now = self.keyframes[number][0], to.keyframes[number][0]
        return carried(pose, before, now, self.nearer(number, to))

    def nearer(self, number: int, to: Layout) -> float:
        """How many times nearer things are at a keyframe in ``to``: a loop has changed that."""
        return self.keyframes[number][1] / to.keyframes[number][1]


@dataclass(frozen=True, eq=False)
class Located(Tracking):
    """What is known of one frame of a room: ``reason``, why it has no pose, in ARKit's words, and
    the ``layout`` that the pose goes with, and the ``length`` of its unit, where sensors say it.
    Where targets say how the map lies in the world: ``setting``, and the ``source`` of the pose."""

    reason: str = ""
    layout: Layout | None = None
    length: Length | None = None
    setting: Setting | None = None
    source: str = ""

    def pose_of(self, earlier: Tracking) -> Pose | None:
        """An earlier frame's pose, in the map as it is in this one; None where it has another
        source: the way from one to the other is no movement."""
        pose = earlier.pose
        if pose is None or not isinstance(earlier, Located):
            return pose
        if earlier.source != self.source:
            return None
        by_targets = self.source in (BY_TARGET, BY_VIEWS)
        if by_targets and earlier.setting is not None and self.setting is not None:
            return self.setting.from_camera(earlier.setting.camera(pose))
        if earlier.layout is None or self.layout is None:
            return pose
        return earlier.layout.carried(pose, self.layout)
