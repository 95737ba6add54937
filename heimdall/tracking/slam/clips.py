"""A clip of a room that nothing is known of: `heimdall pose --world`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from heimdall.capture.lens import Camera
from heimdall.tracking.pose.clips import poses
from heimdall.tracking.slam.found import FoundPlane
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker


def room_poses(source: str, camera: Camera | None, *, most: int | None = None) -> dict[str, Any]:
    """The result of `heimdall pose --world`, as its JSON has it. ``camera``: None is what is known
    of the source, or a guess.

    The mapper works between frames: so the same frames give the same poses, and times are of both.
    """
    with closing(RoomTracker(Mapper())) as tracker:
        found = poses(source, camera, tracker, most=most, also=lambda: {"reason": tracker.reason})
        return found | {"planes": [_row(each) for each in tracker.map.planes.planes]}


def _row(plane: FoundPlane) -> dict[str, Any]:
    return {
        "point": plane.pose.translation.tolist(),
        "normal": plane.normal.tolist(),
        "extent": list(plane.size),
        "kind": plane.kind,
    }
