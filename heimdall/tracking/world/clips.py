"""A clip of targets in a room: `heimdall pose --world` with targets."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.tracking.pose import PoseTracker
from heimdall.tracking.pose.clips import poses
from heimdall.tracking.pose.tracker import LOST
from heimdall.tracking.slam.clips import plane_row
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker
from heimdall.tracking.world.carried import Carried
from heimdall.tracking.world.layout import Located
from heimdall.tracking.world.locator import Locator


class _InMetres:
    """``tracker``, its poses in the world of its targets."""

    def __init__(self, tracker: Carried) -> None:
        self._tracker = tracker
        self.found: Located | None = None  # of the last frame

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Located:
        """The next frame, BGR uint8."""
        found = self.found = self._tracker.advance(image, camera, sequence, at_s)
        if found.setting is None:  # no target has said the metres
            return replace(found, state=LOST, pose=None, raw=None)
        return replace(found, pose=self.world(found.pose))

    def world(self, pose: Pose | None) -> Pose | None:
        """World to camera, from what the last frame's map says."""
        known = self.found.setting if self.found is not None else None
        return known.camera(pose) if known is not None and pose is not None else pose

    def also(self) -> dict[str, Any]:
        """What else there is to tell of the last frame."""
        assert self.found is not None
        return {"reason": self.found.reason, "source": self.found.source}

    def planes(self) -> list[dict[str, Any]]:
        """Of the map, once it is known where that lies."""
        found = self.found
        if found is None or found.layout is None or found.setting is None:
            return []
        put, metres = found.setting.place, found.setting.metres
        return [
            plane_row(put(each.pose), (metres * each.size[0], metres * each.size[1]), each.kind)
            for each in found.layout.planes.planes
        ]


def carried_poses(
    source: str,
    camera: Camera | None,
    targets: PoseTracker,
    *,
    most: int | None = None,
    gravity: Motion | None = None,
) -> dict[str, Any]:
    """The result of `heimdall pose --world` with ``targets``, as its JSON has it: in metres, and in
    their axes. ``camera``: None is what is known of the source, or a guess. ``gravity``: as
    the camera was held when it began."""
    with closing(Locator(RoomTracker(Mapper(), gravity=gravity))) as room:
        tracker = _InMetres(Carried(targets, room))
        found = poses(source, camera, tracker, most=most, also=tracker.also)
        return found | {"metres": True, "planes": tracker.planes()}
