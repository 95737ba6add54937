"""A place of a room's map: it goes with a keyframe, and with the plane that it stands on."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.slam.found import FoundPlane
from heimdall.tracking.slam.model import nearer
from heimdall.tracking.world.layout import Layout
from heimdall.tracking.world.places import Plane, nearest
from heimdall.tracking.world.setting import Setting

ON_M = 0.002  # from a plane: it stands on it
MOST_SLID = 0.2  # of the distance: a plane that has moved by more is another one


class InMap(Protocol):
    """The room that a place is in, as it goes with the picture being drawn."""

    @property
    def layout(self) -> Layout | None: ...

    @property
    def setting(self) -> Setting | None: ...

    def plane_of(self, name: str) -> FoundPlane | None: ...


class Hung:
    """A place that hangs on a keyframe: when the map is adjusted, it goes with that. ``reach``: of
    the distance, how far off the plane may be that it moves onto; None: any."""

    def __init__(self, room: InMap, pose: Pose, view: Pose) -> None:
        """``pose`` from its own axes to the map's; ``view`` from the map to the camera then."""
        assert room.layout is not None
        assert room.setting is not None
        self.reach: float | None = None
        self._on = ""  # the plane that it stands on
        self._room, self._layout = room, room.layout
        self._shown = room.setting.place(pose)
        self._number, self._relative, self._view = 0, pose, view
        self._hang(pose, view)

    @property
    def pose(self) -> Pose:
        """From its own axes to the world's, now."""
        now, layout = self._room.setting, self._room.layout
        if now is None or layout is None or not self.known:
            return self._shown
        if layout is not self._layout:
            self._move(layout)
        self._shown = now.place(self._in_map())
        return self._shown

    @property
    def known(self) -> bool:
        """False once its map was given up: where it is in the new one, nothing says."""
        now, layout = self._room.setting, self._room.layout
        return now is not None and layout is not None and layout.map is self._layout.map

    @property
    def view(self) -> Pose | None:
        """World to camera, of the one by which it was placed, as the map has that now."""
        now = self._room.setting
        return now.camera(self._view.after(self._keyframe())) if now is not None else None

    def settle(self, planes: list[Plane]) -> bool:
        """Move along the ray by which it was placed onto a plane; False if none is there."""
        now, layout = self._room.setting, self._room.layout
        if now is None or layout is None or not self.known:
            return True  # never
        here = self.pose
        eye = now.points(self._view.after(self._keyframe()).position)
        hit = nearest(planes, eye, here.translation - eye)
        if hit is None:
            return False
        far = float(np.linalg.norm(here.translation - eye))
        if self.reach is not None and abs(hit.distance - far) > self.reach * far:
            return False
        self._relative = self._keyframe().after(now.from_place(hit.pose))
        self._on = hit.plane.name
        return True

    def stand_on(self, planes: list[Plane]) -> None:
        """Go with the one of these planes that it lies on, if there is one, as that is known
        better: what was put there by a look stands there by that look."""
        here = self._shown.translation
        for plane in planes:
            own = plane.pose.inverse.to_camera(here)
            size = plane.size or (np.inf, np.inf)
            if abs(own[1]) < ON_M and abs(own[0]) < size[0] / 2 and abs(own[2]) < size[1] / 2:
                self._on = plane.name

    def _keyframe(self) -> Pose:
        return self._layout.keyframes[self._number][0]

    def _in_map(self) -> Pose:
        return self._keyframe().inverse.after(self._relative)

    def _hang(self, pose: Pose, view: Pose) -> None:
        number = self._layout.nearest(view)
        assert number is not None
        self._number = number
        self._relative = self._keyframe().after(pose)
        self._view = view.after(self._keyframe().inverse)  # from the keyframe's axes

    def _move(self, layout: Layout) -> None:
        """Hang where the map is now; on another keyframe, if that one is gone."""
        if self._number not in layout.keyframes:
            keyframe = self._keyframe()
            pose, view = self._in_map(), self._view.after(keyframe)
            other = self._layout.nearest(keyframe, layout)
            if other is None:
                return
            self._number = other
            self._relative = self._keyframe().after(pose)
            self._view = view.after(self._keyframe().inverse)
        scale = self._layout.nearer(self._number, layout)
        self._relative = nearer(self._relative, scale)
        self._view = nearer(self._view, scale)
        times, self._layout = layout.times / self._layout.times, layout
        if times != 1:
            self._look_through(times)
        plane = self._room.plane_of(self._on) if self._on else None
        if plane is not None:
            self._slide(plane)

    def _look_through(self, times: float) -> None:
        """The lens is so many times longer: stay at the pixel where it was placed."""
        here, view = self._in_map(), self._view.after(self._keyframe())
        seen = view.to_camera(here.translation) / (times, times, 1.0)
        self._relative = self._keyframe().after(Pose(here.rotation, view.to_world(seen)))

    def _slide(self, plane: FoundPlane) -> None:
        """Along the ray by which it was placed, to where that meets the plane now."""
        here = self._in_map()
        eye = self._view.after(self._keyframe()).position
        ray = here.translation - eye
        down = float(plane.normal @ ray)
        times = float(plane.normal @ (plane.pose.translation - eye)) / down if down else 0.0
        if abs(times - 1) < MOST_SLID:
            moved = Pose(here.rotation, eye + times * ray)
            self._relative = self._keyframe().after(moved)
