"""What an app's content stands in: declared by the app in one line, asked in its methods.

    world = World(Marker("DICT_4X4_50", 7, 0.08))
    world = World()  # the room itself
    world = World(Marker(...), room=True)  # the marker, and out of its sight the room

Main thread only; poses come from a thread of their own. Axes: metres, those of the first target
(origin in its middle, x right, y up the page, z out of it); in a room z is up, and the origin lies
where the camera looked first, on the plane that was found there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.errors import AppError, ConfigError, HeimdallError
from heimdall.tracking.pose import Board, ImageTarget, Marker, PoseTracker, Views
from heimdall.tracking.pose.targets import Target
from heimdall.tracking.pose.tracker import LOST, TRACKED
from heimdall.tracking.pose.views import map_file
from heimdall.tracking.world import room_file, surface
from heimdall.tracking.world.anchor import WorldAnchor
from heimdall.tracking.world.carried import Carried, targets_of
from heimdall.tracking.world.course import CameraState
from heimdall.tracking.world.layout import Located
from heimdall.tracking.world.locator import INITIALIZING, Locator, RoomFollowing, room_tracker
from heimdall.tracking.world.places import Hit, Plane, nearest, on_target
from heimdall.tracking.world.room import Room
from heimdall.tracking.world.room_file import RoomMap
from heimdall.tracking.world.setting import GUESS, IN_PLACE, TARGET
from heimdall.tracking.world.things import Box
from heimdall.tracking.world.thread import Following, PoseThread
from heimdall.tracking.world.way import Way

if TYPE_CHECKING:
    from heimdall.capture import Frame

log = logging.getLogger(__name__)

NOT_YET = Located(0, LOST, None)
STILL = Pose(np.eye(3), np.zeros(3))
GONE_MS, BACK_MS = 500.0, 200.0  # content fades so long when the pose is lost, and comes back
REHEARSED_M = 0.5


class World:
    """``targets``: what the camera is found by, ``Marker``, ``Board`` or ``ImageTarget``; without
    any, the room itself is tracked. ``map``: a name, or a path, under which what was seen around
    the targets, or the room, is kept at the end of a run and found again in the next one.
    ``remember``: False where the targets move before what is around them, a box in a hand say.
    ``ground``: whether the plane that the first target lies in, or the level one of a room, goes
    on around it, as a table does. ``camera_height_m``: how high above that plane the camera of a
    room begins, by which its metres are right; None: they are a guess. ``room``: track the room
    around targets, too, for where they are out of sight; until one was seen, metres are a guess.
    ``gravity``: where down is as the camera is held when a room begins, (0, 1, 0) for one held
    level: x right, y down, z into the picture; frames' own ``Camera.motion`` says it better."""

    def __init__(
        self,
        *targets: Target,
        map: str | Path | None = None,
        remember: bool = True,
        ground: bool = True,
        camera_height_m: float | None = None,
        room: bool = False,
        gravity: np.ndarray | Sequence[float] | None = None,
    ) -> None:
        for each in targets:
            if not isinstance(each, Marker | Board | ImageTarget):
                raise ConfigError(f"a world of {each!r}: give Marker, Board or ImageTarget values")
        if map is not None and not remember:
            raise ConfigError("a world with a map needs remember=True")
        if room and not (targets and remember):
            raise ConfigError("room=True is for a world with targets that lie still, remember=True")
        if camera_height_m is not None and targets:
            raise ConfigError(
                "camera_height_m is for a world without targets: those say the metres"
            )
        if camera_height_m is not None and not 0 < camera_height_m < np.inf:
            raise ConfigError(f"camera_height_m={camera_height_m}: give metres above 0")
        if gravity is not None and targets and not room:
            raise ConfigError("gravity is for a room: a world of targets alone has their axes")
        self.targets, self.ground, self._with_room = targets, ground, room
        self._gravity = Motion(gravity) if gravity is not None else None
        self._map, self._remember, self._height_m = map, remember, camera_height_m
        self.planes: list[Plane] = []  # what there is besides, for rays to meet
        self.changed: list[Plane] = []  # planes found, or changed, with the picture being drawn
        self._thread: PoseThread | None = None
        self._room: Room | None = None
        self._kept: RoomMap | None = None  # the map of an earlier run
        self._locator: Locator | None = None
        self._frame: Frame | None = None
        self._place = CameraState(None, False)
        self._camera: Camera | None = None
        self._fade = 0.0
        self._shown_ns = 0
        self._was_tracked = False
        self._path = Way()
        self._drawn = self._seen = self._exact = self._lost = 0

    def fresh(self) -> World:
        """This declaration, with nothing seen yet: each run has one of its own."""
        return type(self)(
            *self.targets,
            map=self._map,
            remember=self._remember,
            ground=self.ground,
            camera_height_m=self._height_m,
            room=self._with_room,
            gravity=self._gravity.down if self._gravity is not None else None,
        )

    # --- what an app asks ---------------------------------------------------------------------

    @property
    def state(self) -> str:
        """``tracked`` or ``lost``, for the picture being drawn."""
        return TRACKED if self.tracked else LOST

    @property
    def tracked(self) -> bool:
        """True if the camera's pose is known; else ``pose`` is the last that was."""
        return self._place.tracked

    @property
    def reason(self) -> str:
        """Why a room is not tracked, in ARKit's words: ``initializing`` (move the camera sideways),
        ``excessive motion``, ``insufficient features``, ``relocalizing`` (go back to where it was);
        empty while it is, and where a target is looked for."""
        if self.tracked or self._room is None:
            return ""
        found = self._place.found
        return found.reason if isinstance(found, Located) else INITIALIZING

    @property
    def scale_known(self) -> bool:
        """True if metres are metres: targets say how large they are, a room does with
        ``camera_height_m``, once a level plane is found in it."""
        return self.scale_source != GUESS

    @property
    def scale_source(self) -> str:
        """What says the metres: ``marker`` (any target), ``camera height``, ``user``, ``thing``,
        ``sensors``, ``device`` (one that tracks itself); ``guess``."""
        if self._room is not None:
            return self._room.scale_source
        return TARGET if self.targets else GUESS

    def scale_by(self, factor: float) -> None:
        """A room whose metres are a guess is so many times as large, as the user says: what stands
        in it keeps its place. Raises AppError where there is no such room."""
        if self._room is None:
            raise AppError("scale_by() is for a room whose metres are a guess")
        self._room.scale_by(factor)

    def size(self, box: Box, height_m: float, spread: float = 0.15) -> None:
        """What fills ``box`` (left, top, right, bottom) of the picture being drawn stands upright
        and is ``height_m`` tall, as such things are but for a relative standard deviation of
        ``spread``. Where nothing better says a room's metres, they follow from several such looks
        at things on level planes: ``scale_source`` is ``thing`` then. Raises AppError for what is
        no height, or no box."""
        numbers = np.array([*box, height_m, spread], np.float64)
        if len(numbers) != 6 or not np.isfinite(numbers).all() or min(height_m, spread) <= 0:
            raise AppError(f"size({box}, {height_m}, {spread}): give a box, and numbers above 0")
        if self._room is not None and self._camera is not None and self.tracked:
            self._room.size(box, self._camera, height_m, spread)

    @property
    def scale_spread(self) -> float | None:
        """By how much the metres may be wrong, a relative standard deviation, where things or
        sensors say them; None where something else does."""
        return self._room.scale_spread if self._room is not None else None

    @property
    def found(self) -> list[Plane]:
        """The planes that were found in a room, oldest first: each keeps its ``name``."""
        return list(self._room.found) if self._room is not None else []

    @property
    def in_room(self) -> bool:
        """Whether the room is tracked, or is to be."""
        return self._room is not None

    @property
    def known_planes(self) -> list[Plane]:
        """All that rays meet: targets, ``planes`` and those ``found``."""
        return [*self._target_planes(), *self.planes, *self.found]

    @property
    def points(self) -> np.ndarray:
        """The points (n, 3) that a room is known by, in metres."""
        return self._room.points if self._room is not None else np.zeros((0, 3))

    @property
    def path(self) -> np.ndarray:
        """Where the camera was (n, 3), in metres, the newest last: the last 600 places, 1 cm
        apart."""
        return self._path.points

    @property
    def pose(self) -> Pose | None:
        """World to camera, for the picture being drawn; None until the first."""
        return self._camera.pose if self._camera is not None else None

    @property
    def camera(self) -> Camera | None:
        """What took the picture being drawn, with ``pose``; None until there is one."""
        return self._camera

    @property
    def ahead_ms(self) -> float:
        """How far the pose was predicted, to the picture being drawn, from the last that was
        found."""
        return self._place.ahead_ns / 1e6

    @property
    def fade(self) -> float:
        """The opacity of all that stands in the world: 1 while it is tracked, falling to 0 when it
        is lost."""
        return self._fade

    @property
    def problem(self) -> str:
        """Why nothing is followed, or the map does not grow, in words; empty while all is well."""
        followed = self._thread.problem if self._thread is not None else ""
        return followed or (self._locator.problem if self._locator is not None else "")

    @property
    def errors(self) -> list[str]:
        """What failed on the way, each message once with its count, and why the map does not
        grow."""
        failed = self._thread.errors if self._thread is not None else []
        map_problem = self._locator.problem if self._locator is not None else ""
        return [*failed, *([map_problem] if map_problem else [])]

    @property
    def origin(self) -> WorldAnchor:
        """The middle of the first target: y out of it, z down the page. In a room: y up, where the
        camera looked first."""
        return WorldAnchor(self, self._room.origin if self._room is not None else on_target(STILL))

    def on(self, target: Target) -> WorldAnchor | None:
        """The middle of a target, in the same way; None until it is known where it is."""
        for surface_ in self._target_planes():
            if surface_.name == target.name:
                return WorldAnchor(self, surface_.pose)
        return None

    def anchor(self, at: Pose | Hit | Plane) -> WorldAnchor:
        """A place that content keeps: what ``hit`` gave, or any pose from its own axes to the
        world's."""
        pose = at if isinstance(at, Pose) else getattr(at, "pose", None)
        if not isinstance(pose, Pose):
            raise AppError(f"an anchor at {at!r}: give what hit() gave, a plane, or a Pose")
        if self._room is not None and self.pose is not None:
            hung = self._room.hang(pose, self.pose, at if isinstance(at, Hit) else None)
            if hung is not None:
                return WorldAnchor(self, hung)
        return WorldAnchor(self, pose)

    def hit(self, x: float, y: float) -> Hit | None:
        """What the ray through a pixel of the picture being drawn meets first: targets, ``planes``
        and the ground. None where it meets nothing, and before the first pose. In a room: a plane
        that was found, or something ``instant`` where none is known, as far away as what is seen
        there."""
        if self._camera is None or self._camera.pose is None or not np.isfinite((x, y)).all():
            return None
        pose = self._camera.pose
        ray = pose.rotation.T @ self._camera.rays(np.array([[x, y]], np.float64))[0]
        if self._room is not None:
            return self._room.hit(pose.position, ray, [*self._target_planes(), *self.planes])
        return nearest([*self._target_planes(), *self.planes, *self._ground()], pose.position, ray)

    def hides(self, point: np.ndarray) -> bool:
        """Whether a plane that was found in a room lies before a point (3,) of the world, metres,
        in the picture being drawn."""
        eye = self.pose.position if self.pose is not None else None
        return eye is not None and any(each.hides(point, eye) for each in self.found)

    def surface_at(
        self,
        x: float,
        y: float,
        *,
        height_m: float = surface.HEIGHT_M,
        pitch: float = surface.PITCH,
        anew: bool = False,
    ) -> Plane | None:
        """The plane under a pixel: where the user taps, or a table was detected. In a world without
        targets that is not tracked yet, or ``anew``, the world begins there, and not in the room:
        its sizes follow from the guess that the camera is ``height_m`` above the plane and looks
        down by ``pitch`` degrees. None where nothing is met, or the picture holds too little
        there."""
        if self.targets or (self.tracked and not anew):
            found = self.hit(x, y)
            return found.plane if found else None
        frame, thread = self._frame, self._thread
        if frame is None or thread is None:
            raise AppError("surface_at() needs a run: call it from draw or an input method")
        pose = surface.guessed(frame.camera, (x, y), height_m, pitch)
        side = surface.around(frame.camera, pose) if pose is not None else None
        if pose is None or side is None:
            return None
        seen = frame.image, frame.camera, pose, side
        make = partial(surface.tracker, *seen, remember=self._remember)
        thread.begin_anew(partial(_instead, self._locator, make), frame)
        self._room = None
        return Plane(on_target(STILL), None, "surface", guessed=True)

    # --- what a run does ----------------------------------------------------------------------

    @property
    def thread(self) -> PoseThread | None:
        """What follows the frames, between ``begin`` and ``end``."""
        return self._thread

    def begin(self, following: RoomFollowing | None = None) -> None:
        """Get ready to follow frames. Raises ConfigError for targets that cannot be found or told
        apart, and for a map that cannot be read. ``following``: what follows the camera in a room,
        in place of a ``RoomTracker``; it is closed in the end."""
        self.forget()
        tracker: Following | None = None
        if self.targets:
            views = Views() if self._remember else None
            path = self._map_path()
            if path is not None and views is not None and path.is_file():
                views.load(path)
            tracker = targets = PoseTracker(self.targets, views)
        else:
            path = self._map_path() if following is None else None
            self._kept = room_file.load(path) if path is not None and path.is_file() else None
        if self._with_room or not self.targets:
            self._room = self._empty_room()
            known = self._kept.map if self._kept is not None else None
            self._locator = Locator(following or room_tracker(known, self._gravity))
            tracker = Carried(targets, self._locator) if self.targets else self._locator
        self._thread = PoseThread(tracker)

    def show(self, frame: Frame, now_ns: int) -> Camera:
        """``frame`` is about to be drawn at that time of any clock: what took it, with its pose."""
        again = self._frame is not None and frame.sequence == self._frame.sequence
        if self._thread is not None and not (again and self.tracked and not self.ahead_ms):
            self._place = self._thread.course.at(frame.captured_ns)
            if self._room is None and isinstance(self._place.found, Located):
                self._place = CameraState(None, False)  # of a room that was left by a tap
            if again and not self.tracked:  # a still image: one look may not be enough
                self._thread.hand(frame)
        self._drawn += 1
        self._exact += self.tracked and not self.ahead_ms
        self._seen += self.tracked
        self._lost += self._was_tracked and not self.tracked
        self._was_tracked = self.tracked
        seen = self._seen_from()
        if seen is not None and self.tracked:
            self._path.add(seen.position)
        pose = seen or self.pose
        self._frame, self._camera = frame, frame.camera.zoomed(self._place.focal).at(pose)
        gone_ms = (now_ns - self._shown_ns) / 1e6 if self._shown_ns else 0.0
        self._shown_ns = now_ns
        step = gone_ms / BACK_MS if self.tracked else -gone_ms / GONE_MS
        self._fade = min(max(self._fade + step, 0.0), 1.0)
        return self._camera

    def rehearse(self, camera: Camera) -> Camera:
        """Be tracked for a moment, so that what content takes to draw can be measured: half a metre
        before the origin. ``forget`` ends that."""
        lean = np.radians(50.0)
        c, s = np.cos(lean), np.sin(lean)
        turned = np.array([[1, 0, 0], [0, -c, -s], [0, s, -c]])
        pose = Pose(turned, np.array([0.0, 0.0, REHEARSED_M]))
        self._place, self._fade = CameraState(pose, True), 1.0
        self._camera = camera.at(pose)
        return self._camera

    def forget(self) -> None:
        """Nothing has been seen."""
        self._place, self._fade, self._camera = CameraState(None, False), 0.0, None
        self._frame, self._shown_ns, self._was_tracked = None, 0, False
        self.changed, self._path = [], Way()
        if self._room is not None:
            self._room = self._empty_room()

    def count_afresh(self) -> None:
        """Let ``figures`` begin anew."""
        self._drawn = self._seen = self._exact = self._lost = 0
        if self._thread is not None:
            self._thread.count_afresh()

    def figures(self) -> dict[str, Any]:
        """Of frames shown: the share ``tracked``, of those the share with a pose of their own
        (``exact``), and how often the world was ``lost``."""
        return {
            "tracked": round(self._seen / self._drawn, 4) if self._drawn else None,
            "lost": self._lost,
            "exact": round(self._exact / self._seen, 4) if self._seen else None,
        }

    def end(self) -> None:
        """End the thread, and keep the map, if there is to be one. Ending twice is allowed."""
        thread, self._thread = self._thread, None
        locator, self._locator = self._locator, None
        room, self._room = self._room, None
        self.forget()
        if thread is not None:
            thread.close()
        if locator is not None:
            locator.close()
        path = self._map_path()
        tracker = targets_of(thread.tracker) if thread is not None else None
        views = tracker.views if tracker is not None else None
        kept = room.kept if room is not None and not self.targets else None
        try:
            if path is not None and views is not None and len(views):
                views.save(path)
            if path is not None and kept is not None:
                room_file.save(path, kept, self._kept)
        except HeimdallError as error:  # the run is over: it costs nothing but the map
            log.warning("%s", error)

    # --- its parts ----------------------------------------------------------------------------

    def _empty_room(self) -> Room:
        given = IN_PLACE if self.targets else None
        return Room(self._height_m, ground=self.ground, given=given, known=self._kept)

    def _seen_from(self) -> Pose | None:
        """The pose for the picture being drawn; None while that is unknown."""
        if self._room is None:
            return self._place.pose
        found = self._place.found if isinstance(self._place.found, Located) else NOT_YET
        pose = self._room.see(found.layout, self._place.pose, found.setting, found.length)
        self.changed = self._room.changed
        self._path.follow(self._room.layout, self._room.setting)
        return pose

    def _map_path(self) -> Path | None:
        if isinstance(self._map, str):
            return map_file(self._map)
        return self._map

    def _target_planes(self) -> list[Plane]:
        tracker = targets_of(self._thread.tracker) if self._thread is not None else None
        if tracker is None:
            return []
        placed = self._thread.placed if self._thread is not None else {}
        planes = []
        for each in tracker.prepared:
            name = each.target.name
            if name in placed:
                across, up = np.ptp(each.corners[:, :2], axis=0)
                planes.append(Plane(on_target(placed[name]), (float(across), float(up)), name))
        return planes

    def _ground(self) -> list[Plane]:
        if not self.ground or self._thread is None or self._thread.tracker is None:
            return []
        return [Plane(on_target(STILL), None, "ground", guessed=not self.targets)]


def _instead(locator: Locator | None, make: Callable[[], PoseTracker]) -> PoseTracker:
    """On the pose thread: another tracker, in place of the room's."""
    if locator is not None:
        locator.close()
    return make()
