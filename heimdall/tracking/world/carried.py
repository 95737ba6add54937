"""Targets, and the room around them that carries on where they are out of sight.

A target that is seen says where the camera is; else the room does, through the tie between the two;
else what is remembered around the targets. From one to the other the pose goes within a moment, and
does not jump. Until a target has been seen and tied, the room is followed as one without targets.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose import PoseTracker
from heimdall.tracking.pose.tracker import LOST, TRACKED, Tracking
from heimdall.tracking.world.layout import BY_ROOM, BY_TARGET, BY_VIEWS, Located
from heimdall.tracking.world.locator import Locator
from heimdall.tracking.world.setting import IN_PLACE
from heimdall.tracking.world.thread import Following
from heimdall.tracking.world.tie import Tie

BLEND_S = 0.3  # from one source of the pose to another
RATE_HZ = 30.0
LOOK_EVERY = 3  # frames: so often targets are looked for that are out of sight of a tracked room


class Carried:
    """``targets`` and the ``room``, followed frame by frame. What it tells is in the map's axes, as
    of any room, with the setting by which they are the targets'; before there is one, in those."""

    def __init__(self, targets: PoseTracker, room: Locator) -> None:
        self.targets, self._room = targets, room
        self._tie = Tie(targets.prepared[0].corners)
        self._blend = Blend()
        self._focal = self._lens = 1.0  # times, as targets and as the room have found it
        self._frames = 0
        self._by_targets = False  # whether they have said the axes
        self._alone = False  # whether the room is shown by itself
        self._enough = False  # the room knows where the camera is, and targets do not

    @property
    def placed(self) -> dict[str, Pose]:
        """Where each target that has been seen is: from its own axes to the world."""
        return self.targets.placed

    def forget(self) -> None:
        """Nothing is known of the room."""
        self._room.forget()

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Located:
        """The next frame, BGR or grey uint8."""
        at_s = self._frames / RATE_HZ if at_s is None else at_s
        self._frames += 1
        lens = self._lens
        if self._enough and self._frames % LOOK_EVERY:
            seen = Tracking(sequence, LOST, None, focal=self._focal)
        else:
            seen = self.targets.advance(image, camera.zoomed(lens), sequence, at_s)
        if seen.focal != self._focal:  # the map has places by the lens as it was taken to be
            self._focal = seen.focal
            self._room.forget()
        found = self._room.advance(image, camera.zoomed(seen.focal), sequence, at_s)
        self._lens, self._enough = found.focal, found.tracked and not seen.tracked
        assert found.layout is not None
        setting = self._tie.take(
            found.layout,
            found.pose if found.tracked else None,
            seen.raw if seen.tracked and seen.target else None,
        )
        poses = {}
        if seen.tracked and seen.pose is not None:
            poses[BY_TARGET if seen.target else BY_VIEWS] = seen.pose
        if found.tracked and found.pose is not None and setting is not None:
            poses[BY_ROOM] = setting.camera(found.pose)
        alone = not poses or (self._alone and found.tracked and BY_TARGET in poses)
        self._alone = setting is None and not self._by_targets and alone
        if self._alone:
            return replace(found, focal=seen.focal * found.focal)
        self._by_targets = True
        source = next((each for each in (BY_TARGET, BY_ROOM, BY_VIEWS) if each in poses), "")
        shown = self._blend(source, poses, at_s)
        now = setting or IN_PLACE
        by, lens = (found, found.focal) if source == BY_ROOM else (seen, lens)
        return Located(
            sequence,
            TRACKED if source else LOST,
            now.from_camera(shown) if shown is not None else None,
            now.from_camera(poses[source]) if source else None,
            by.reprojection_px,
            by.points,
            seen.focal * lens,
            source == BY_TARGET,
            reason="" if source or setting is None else found.reason,
            layout=found.layout if setting is not None else None,
            setting=now,
            source=source,
        )


class Blend:
    """Poses of several sources, without a jump from one to the other. Call it with each frame's."""

    def __init__(self) -> None:
        self._source = ""
        self._off = Pose(np.eye(3), np.zeros(3))  # from the source's camera to the one shown
        self._since_s = 0.0
        self._before: dict[str, Pose] = {}
        self._shown: Pose | None = None

    def __call__(self, source: str, poses: dict[str, Pose], at_s: float) -> Pose | None:
        """World to camera as it is to be shown, by that ``source`` out of all that there are; the
        last one where there is none."""
        if source and source != self._source:
            self._off = self._apart(source, poses, at_s)
            self._since_s = at_s
        self._source, self._before = source, poses
        if source:
            self._shown = self._left(at_s).after(poses[source])
        return self._shown

    def _apart(self, source: str, poses: dict[str, Pose], at_s: float) -> Pose:
        """By how much what was shown differs from what is now: in this frame, or in the last."""
        if self._source in poses:
            now = self._left(at_s).after(poses[self._source])
            return now.after(poses[source].inverse)
        if self._source and source in self._before and self._shown is not None:
            return self._shown.after(self._before[source].inverse)
        return Pose(np.eye(3), np.zeros(3))

    def _left(self, at_s: float) -> Pose:
        share = max(0.0, 1 - (at_s - self._since_s) / BLEND_S)
        if not share:
            return Pose(np.eye(3), np.zeros(3))
        return Pose.of(share * self._off.rotation_vector, share * self._off.translation)


def targets_of(tracker: Following | None) -> PoseTracker | None:
    """What finds targets in what a world is followed by; None where nothing does."""
    tracker = tracker.targets if isinstance(tracker, Carried) else tracker
    return tracker if isinstance(tracker, PoseTracker) else None
