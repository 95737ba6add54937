"""The room that an app's content stands in, as the main thread knows it: its planes, what a ray
meets where there is none, and places that go with the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakSet

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import AppError
from heimdall.tracking.slam.found import HORIZONTAL, FoundPlane, changed
from heimdall.tracking.world import level, surface
from heimdall.tracking.world.hung import Hung
from heimdall.tracking.world.layout import Layout
from heimdall.tracking.world.lengths import SHOWS, Length, Lengths
from heimdall.tracking.world.places import NEAREST_M, Hit, Plane, nearest, on_target, standing
from heimdall.tracking.world.room_file import RoomMap
from heimdall.tracking.world.setting import (
    DEVICE,
    GUESS,
    HEIGHT,
    SENSORS,
    TARGET,
    THING,
    USER,
    Setting,
)
from heimdall.tracking.world.things import Box, height_of

UP = np.array([0.0, 0.0, 1.0])
ORIGIN = on_target(Pose(np.eye(3), np.zeros(3)))
AROUND = 0.08  # of a ray: points so near to it say how far away things are there
MOST_NEAR = 7  # of them
LEAST_NEAR = 2
NEARER = 0.85  # of the ground's distance: what is seen there stands on it
MOST_MAPS = 4
UNSURE = 0.3  # of the distance: an anchor placed by points goes no farther to a plane


class Room:
    """``see`` what was found in each frame that is shown. ``height_m``: of the camera above what it
    looked at when it began; None: it is guessed. ``given``: how a world of targets begins.
    ``known``: the map of an earlier run, whose axes and unit stay."""

    def __init__(
        self,
        height_m: float | None = None,
        *,
        ground: bool = True,
        given: Setting | None = None,
        known: RoomMap | None = None,
    ) -> None:
        self.found: list[Plane] = []
        self.changed: list[Plane] = []  # by the last frame
        self._late: list[Plane] = []  # changed since then, to be told with the next one
        self.origin = Origin()
        self._height_m, self._ground, self._kept = height_m, ground, known
        self._maps = [known] if known is not None else []  # all that there were, with their axes
        self._found_kept = False
        self._layout: Layout | None = None
        self._setting = given
        self._times, self._said = 1.0, USER  # the guess of the height is, as that says
        self._things = Lengths()
        self._lengths: dict[str, Length] = {}  # of the map's unit, by what has measured it
        self._known: dict[int, _Known] = {}
        self._instant: WeakSet[Hung] = WeakSet()

    def see(
        self,
        layout: Layout | None,
        pose: Pose | None,
        given: Setting | None = None,
        length: Length | None = None,
    ) -> Pose | None:
        """A frame is shown, of a camera at ``pose`` in the map as it is in ``layout``: its pose in
        the world, None while that is unknown. ``given``: how the map lies in the world, where
        targets say it. ``length``: of the map's unit, where sensors say it."""
        self.changed, self._late = self._late, []
        if given is not None:
            self._take_given(layout, given)
        elif layout is not None and layout is not self._layout:
            self._take(layout)
        if length is not None:
            self._measured(SENSORS, length)
        if pose is None or self._setting is None:
            return None
        if self._kept is not None and layout is not None and layout.map is self._kept.map:
            self._found_kept = True
        return self._setting.camera(pose)

    def hit(self, eye: np.ndarray, ray: np.ndarray, planes: list[Plane]) -> Hit:
        """What a ray of the world meets: a plane that was found, or one of ``planes``; else
        something as far away as the map's points near it, or the ground, or a guess."""
        met = nearest([*planes, *self.found], eye, ray)
        if met is not None:
            return met
        far, sure = self._far(eye, ray)
        around = self._around()
        meets = around.meets(eye, ray) if around is not None else None
        if around is not None and meets is not None and not (sure and far < NEARER * meets):
            height = float(UP @ (eye - around.pose.translation))
            if meets * float(np.linalg.norm(ray)) < surface.MOST_HEIGHTS * height:
                place = standing(eye + meets * ray, UP, eye)
                return Hit(place, meets * float(np.linalg.norm(ray)), around, instant=True)
        place = standing(eye + far * ray, UP, eye)
        return Hit(place, far * float(np.linalg.norm(ray)), _guess(place), instant=True)

    def hang(self, pose: Pose, camera: Pose, hit: Hit | None = None) -> Hung | None:
        """A place in the world, from now on one of the map, as a ``camera`` there saw it; None
        before there is one. An instant ``hit`` moves onto a plane, once one is found there."""
        if self._layout is None or self._setting is None:
            return None
        view = self._setting.from_camera(camera)
        made = Hung(self, self._setting.from_place(pose), view)
        if hit is not None and hit.instant:
            sure = self._far(camera.position, hit.point - camera.position)[1]
            made.reach = UNSURE if sure else None
            self._instant.add(made)
        else:
            made.stand_on(self.found)
        return made

    def plane_of(self, name: str) -> FoundPlane | None:
        """One of ``found``, as the map has it now."""
        return next((each.now for each in self._known.values() if each.plane.name == name), None)

    @property
    def scale_source(self) -> str:
        """What the metres follow from."""
        return self._setting.source if self._setting is not None else GUESS

    @property
    def scale_known(self) -> bool:
        """True if that is no guess."""
        return self.scale_source != GUESS

    def scale_by(self, factor: float) -> None:
        """All that is there is so many times as large as it was taken to be. Raises AppError before
        there is a map, and where its scale is known otherwise."""
        if not (isinstance(factor, int | float) and 0 < factor < np.inf):
            raise AppError(f"scale_by({factor!r}): give a factor above 0")
        source = HEIGHT if self._height_m is not None else self.scale_source
        if source not in (GUESS, USER):
            raise AppError(f"scale_by(): the {source} says the metres of this room already")
        if self._layout is None or self._setting is None:
            raise AppError("scale_by() needs a room that is tracked: ask world.tracked before")
        self._enlarge(self._layout, self._setting, factor, USER)

    def size(self, box: Box, camera: Camera, height_m: float, spread: float) -> None:
        """Something upright of a known height is seen. It counts where it stands on a level plane,
        and nothing better says the metres."""
        layout, now = self._layout, self._setting
        if layout is None or now is None or not self._may_be_measured:
            return
        assert camera.pose is not None
        left, _, right, bottom = box
        foot = camera.rays(np.array([[(left + right) / 2, bottom]]))[0]
        level_ = [each for each in self.found if each.kind == HORIZONTAL]
        met = nearest(level_, camera.pose.position, camera.pose.rotation.T @ foot)
        tall = height_of(box, camera, met.point) if met is not None else 0.0
        if tall <= 0:
            return
        self._things.add(Length(now.metres * height_m / tall, spread))
        if (found := self._things.length) is not None:
            self._measured(THING, found)

    @property
    def scale_spread(self) -> float | None:
        """The relative standard deviation of metres that were measured; None where something else
        says them."""
        found = self._lengths.get(self.scale_source)
        return found.spread if found is not None else None

    @property
    def _may_be_measured(self) -> bool:
        return self.scale_source in (GUESS, THING, SENSORS)

    def _measured(self, source: str, found: Length) -> None:
        """The surest says the metres, where nothing better does."""
        self._lengths[source] = found
        layout, now = self._layout, self._setting
        if layout is None or now is None or not self._may_be_measured:
            return
        surest = min(self._lengths, key=lambda each: self._lengths[each].spread)
        factor = self._lengths[surest].metres / now.metres
        if surest != now.source or abs(factor - 1) > SHOWS:
            self._enlarge(layout, now, factor, surest)

    def _enlarge(self, layout: Layout, now: Setting, factor: float, source: str) -> None:
        self._times, self._said = self._times * factor, source
        self._setting, self._known = now.larger(factor, source), {}
        self._learn(layout, self._setting)
        self._late = list(self.found)

    # --- the map ----------------------------------------------------------------------------

    @property
    def points(self) -> np.ndarray:
        """Its points (n, 3), in the world."""
        if self._layout is None or self._setting is None:
            return np.zeros((0, 3))
        return self._setting.points(self._layout.points)

    @property
    def kept(self) -> RoomMap | None:
        """What a later run goes on with: the map of an earlier run, if the camera was found in it,
        else the largest of this one; None before there is a map."""
        if self.scale_source == DEVICE:
            return None  # a device's map is its own
        self._note_map()
        if self._kept is not None:
            own = next(each for each in self._maps if each.map is self._kept.map)
            others = [each for each in self._maps if each is not own]
            if self._found_kept or not others:
                return own
        else:
            others = self._maps
        return max(others, key=lambda each: len(each.map.keyframes), default=None)

    @property
    def layout(self) -> Layout | None:
        """The map, as it goes with the picture being drawn."""
        return self._layout

    @property
    def setting(self) -> Setting | None:
        """How its axes and unit are the world's."""
        return self._setting

    def _take(self, layout: Layout) -> None:
        other = self._layout is None or self._layout.map is not layout.map
        if other:
            self._note_map()
        self._layout = layout
        if other:
            self._setting, self._known, self.found, self._times = None, {}, [], 1.0
            self._things, self._lengths = Lengths(), {}
            known = next((each for each in self._maps if each.map is layout.map), None)
            if known is not None:  # of an earlier run, or the camera has come back
                self._setting = known.setting
                self._begin(layout)
        if self._setting is None:
            self._setting = level.guessed(layout)
            self._begin(layout)
        if self._setting is not None and self._setting.on is None:
            found = level.on_ground(layout, self._height_m)
            if found is not None:
                self._setting, self._known = self._scaled(found), {}
                self._begin(layout)
        elif self._setting is not None:
            found = level.levelled(self._setting, layout)
            if found is not None:
                self._setting, self._known = found, {}
        if self._setting is not None:
            self._learn(layout, self._setting)

    def _note_map(self) -> None:
        """The map in use keeps its axes and unit while another one is."""
        if self._layout is None or self._setting is None or not self._layout.keyframes:
            return
        now = RoomMap(self._layout.map, self._setting)
        self._maps = [each for each in self._maps if each.map is not now.map] + [now]
        if len(self._maps) > MOST_MAPS:
            own = self._kept.map if self._kept is not None else None
            self._maps.remove(next(each for each in self._maps if each.map is not own))

    def _take_given(self, layout: Layout | None, given: Setting) -> None:
        if layout is self._layout and given is self._setting:
            return
        if given is not self._setting:  # all planes are elsewhere in the world
            self._known, self.origin.place = {}, None
        self._layout, self._setting = layout, given
        if layout is not None:
            self._learn(layout, given)
        else:
            self.found = []

    def _scaled(self, found: Setting) -> Setting:
        return found if self._times == 1 else found.larger(self._times, self._said)

    def _begin(self, layout: Layout) -> None:
        """The origin of a new setting is a place like others."""
        if self._setting is None:
            return
        first, _ = layout.keyframes[min(layout.keyframes)]
        self.origin.place = Hung(self, self._setting.from_place(ORIGIN), first)

    def _learn(self, layout: Layout, now: Setting) -> None:
        """The planes, as the world has them; those that show a change are ``changed``."""
        known = {}
        for each in layout.planes.planes:
            before = self._known.get(each.id)
            if before is not None and before.now is each:
                known[each.id] = before
                continue
            plane = Plane(
                now.place(each.pose),
                (now.metres * each.size[0], now.metres * each.size[1]),
                f"plane {each.id}",
                guessed=not self.scale_known,
                kind=each.kind,
                outline=now.metres * each.outline,
            )
            same = before is not None and not changed(before.told, each)
            known[each.id] = _Known(before.told if before and same else each, each, plane)
            if not same:
                self.changed.append(plane)
        self._known = known
        self.found = [each.plane for each in known.values()]
        if self.changed:
            for place in list(self._instant):
                if place.settle(self.found):
                    self._instant.discard(place)

    def _around(self) -> Plane | None:
        """The ground, going on around what was seen of it, or around the target."""
        if self.scale_source == TARGET:
            return Plane(ORIGIN, None, "ground") if self._ground else None
        ground = level.ground_of(self._layout) if self._layout is not None else None
        if not self._ground or ground is None or ground.id not in self._known:
            return None
        return Plane(self._known[ground.id].plane.pose, None, "ground", True, ground.kind)

    def _far(self, eye: np.ndarray, ray: np.ndarray) -> tuple[float, bool]:
        """How many times a ray it is to what the map has near it, and whether it has something;
        else to where things are on average."""
        layout, now = self._layout, self._setting
        if layout is None or now is None:
            return level.FIRST_M, False
        ahead = now.points(layout.points) - eye
        length = float(np.linalg.norm(ray))
        far = ahead @ ray / length**2
        seen = far * length > NEAREST_M
        if not seen.any():
            return level.FIRST_M / length, False
        far, ahead = far[seen], ahead[seen]
        off = np.linalg.norm(ahead - far[:, None] * ray, axis=1) / (far * length)
        near = np.argsort(off)[:MOST_NEAR]
        near = near[off[near] < AROUND]
        if len(near) < LEAST_NEAR:
            wide = off < 0.6  # what is in the picture, more or less
            return float(np.median(far[wide] if wide.any() else far)), False
        return float(np.median(far[near])), True


@dataclass(frozen=True, eq=False)
class _Known:
    """A plane as it was ``told``, as it is ``now``, and that in the world."""

    told: FoundPlane
    now: FoundPlane
    plane: Plane


class Origin:
    """Where the world's origin is, in whatever map there is."""

    def __init__(self) -> None:
        self.place: Hung | None = None

    @property
    def pose(self) -> Pose:
        """y up, z to where the camera began."""
        return self.place.pose if self.place is not None else ORIGIN

    @property
    def known(self) -> bool:
        """Always: each map has one."""
        return True

    @property
    def view(self) -> Pose | None:
        """Of the first camera."""
        return self.place.view if self.place is not None else None


def _guess(place: Pose) -> Plane:
    """Something level there, perhaps."""
    return Plane(place, None, "guess", True)
