"""What to try while the pose is lost: one guess a frame, from the likeliest source in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.adrift import Adrift
from heimdall.tracking.pose.finding import Finder
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.pose.views import Views

FOLLOWED_SHARE = 0.16  # of the expected points that must agree: a target may be hidden by 70%
FOUND_SHARE = 0.4  # of them when nothing was known before


@dataclass(frozen=True, eq=False)
class Guess:
    """About where the camera is; the ``share`` of what should be seen there that must be, and
    whether this may be the ``mirrored`` one of a plane's two poses."""

    pose: Pose
    share: float
    mirrored: bool


class Recovery:
    """Asks, in turn: where the camera has drifted since, the remembered views, and the finder."""

    def __init__(self, finder: Finder, views: Views | None) -> None:
        self.finder = finder
        self._views = views
        self._adrift = Adrift()
        self._guesses: list[Guess] = []
        self._turn = 0
        self._known = False
        self._near: np.ndarray | None = None  # where the origin was seen last

    def saw(self, grey: np.ndarray, camera: Camera, pose: Pose) -> None:
        """The pose of this frame is known."""
        self._adrift.keep(grey, pose)
        self._known = True
        self._near = camera.pixels(np.maximum(pose.translation, (-9e9, -9e9, 0.01))[None])[0]

    def guess(self, grey: np.ndarray, camera: Camera, places: Mapping[int, Pose]) -> Guess | None:
        """What to try in this frame; ``places`` of targets, from their own axes to the world."""
        begun, self._known = self._known, False
        if begun:  # what was begun before is old
            self._guesses.clear()
            self.finder.forget()
        drifted = self._adrift.advance(grey, camera)
        if begun:
            return None  # to begin has cost enough
        if not self._guesses:
            self._guesses, costly = self._looked(grey, camera, places, drifted)
            if costly:
                return None  # to be tried in the next frame: this one has cost enough
        return self._guesses.pop(0) if self._guesses else None

    def _looked(
        self,
        grey: np.ndarray,
        camera: Camera,
        places: Mapping[int, Pose],
        drifted: Pose | None,
    ) -> tuple[list[Guess], bool]:
        """Guesses, and whether they have taken long."""
        if not self.finder.busy:
            self._turn += 1
            mapped = self._views is not None and len(self._views) > 0
            turn = self._turn % (1 + mapped + (drifted is not None))
            if turn == 1 and drifted is not None:
                return [Guess(drifted, FOLLOWED_SHARE, False)], False
            if turn and self._views is not None:
                pose = self._views.relocalise(grey, camera)
                return [Guess(pose, FOUND_SHARE, False)] if pose is not None else [], True
        poses = [
            pose.after(places[found.target].inverse)
            for found in self.finder.look(grey, camera, self._near)
            if found.target in places
            for pose in found.poses
        ]
        if drifted is not None:  # nothing turns to a mirrored pose while out of sight
            poses.sort(key=lambda pose: apart(pose, drifted)[0])
        guesses = [Guess(pose, FOUND_SHARE, drifted is None) for pose in poses]
        return guesses, self.finder.costly or drifted is not None
