"""A room's tracker, or the device itself, as a pose thread follows it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.tracker import Tracking
from heimdall.tracking.slam.model import Map
from heimdall.tracking.world.by_device import ByDevice
from heimdall.tracking.world.layout import Layout, Located
from heimdall.tracking.world.lengths import Length, Lengths
from heimdall.tracking.world.shaken import Shaken

INITIALIZING = "initializing"  # until a frame was looked at


class RoomFollowing(Protocol):
    """Follows frames in a room: ``RoomTracker``, or what stands in for it."""

    map: Map
    reason: str

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Tracking: ...

    def forget(self) -> None: ...

    def close(self) -> None: ...


class Locator:
    """``tracker`` as a pose thread follows it: with the layout of each frame."""

    def __init__(self, tracker: RoomFollowing) -> None:
        self._tracker = tracker
        self._layout: Layout | None = None
        self._nothing = Map()
        self._device = ByDevice()
        self._shaken, self._lengths = Shaken(), Lengths()
        self.placed: dict[str, Pose] = {}

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Located:
        """The next frame, BGR or grey uint8. Where its device says where it is, that holds."""
        if camera.device is not None:
            return self._device.located(camera.device, sequence)
        found = self._tracker.advance(image, camera, sequence, at_s)
        reason = "" if found.tracked else self._tracker.reason
        # nothing is put into a map that may turn out to be none
        known = self._tracker.map if reason != INITIALIZING else self._nothing
        before = self._layout
        if before is None or not before.is_of(known):
            self._layout = Layout.of(known)
            if before is None or before.map is not known or before.times != known.times:
                self._shaken, self._lengths = Shaken(), Lengths()  # it has another unit
        length = self._length(found, camera.motion, at_s)
        return Located(**vars(found), reason=reason, layout=self._layout, length=length)

    def _length(self, found: Tracking, motion: Motion | None, at_s: float | None) -> Length | None:
        """Of the map's unit, as sensors have said it until this frame."""
        if at_s is None or motion is None or motion.acceleration is None:
            return None
        if found.tracked and found.raw is not None:
            look = self._shaken.add(at_s, found.raw, np.asarray(motion.acceleration))
            if look is not None:
                self._lengths.add(look)
        return self._lengths.length

    def forget(self) -> None:
        """Nothing is known of the room."""
        self._tracker.forget()

    @property
    def problem(self) -> str:
        """What is wrong with it, in words; empty while all is well."""
        return str(getattr(self._tracker, "problem", ""))

    def close(self) -> None:
        """End what it follows by. No other thread may use it any more."""
        self._tracker.close()


def room_tracker(known: Map | None = None, gravity: Motion | None = None) -> RoomFollowing:
    """With its process on the way: the camera moves out of the first map's sight while that
    starts. ``known``: a map to begin with. ``gravity``: as the camera is held when one begins."""
    from heimdall.tracking.slam.tracker import RoomTracker  # most worlds of targets need none
    from heimdall.tracking.slam.worker import MappingProcess

    mapper = MappingProcess()
    mapper.warm()
    return RoomTracker(mapper, known, gravity)
