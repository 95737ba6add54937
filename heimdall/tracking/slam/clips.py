"""A clip of a room that nothing is known of: `heimdall pose --world`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.clips import poses
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker


def room_poses(
    source: str, camera: Camera | None, *, most: int | None = None, gravity: Motion | None = None
) -> dict[str, Any]:
    """The result of `heimdall pose --world`, as its JSON has it. ``camera``: None is what is known
    of the source, or a guess. ``gravity``: as the camera was held when it began.

    The mapper works between frames: so the same frames give the same poses, and times are of both.
    """
    with closing(RoomTracker(Mapper(), gravity=gravity)) as tracker:
        found = poses(source, camera, tracker, most=most, also=lambda: _also(tracker.reason))
        planes = tracker.map.planes.planes
        rows = [plane_row(each.pose, each.size, each.kind) for each in planes]
        return found | {"metres": False, "planes": rows}


def plane_row(pose: Pose, size: tuple[float, float], kind: str) -> dict[str, Any]:
    """A plane as the JSON has it; ``pose`` from its own axes, y its normal."""
    return {
        "point": pose.translation.tolist(),
        "normal": pose.rotation[:, 1].tolist(),
        "extent": list(size),
        "kind": kind,
    }


def _also(reason: str) -> dict[str, Any]:
    return {"reason": reason, "source": "" if reason else "room"}
