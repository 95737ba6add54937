"""A world of a marker that a room carries on: rendered frames of a real marker on a table, beside a
stand-in for the room's tracker, which knows the camera in axes and a unit of its own."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import psutil
import pytest

from heimdall.capture import Frame, Pose
from heimdall.errors import AppError, ConfigError
from heimdall.tracking import Marker, World
from heimdall.tracking.pose import Tracking
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.world.carried import LOOK_EVERY, Blend
from heimdall.tracking.world.layout import Located
from heimdall.tracking.world.setting import Setting

from .standin import FIRST, LENS, StandIn, in_map, seen_from, table

CAMERA = replace(LENS, guessed=False)
MARKER = Marker("DICT_4X4_50", 7, 0.16)
WHITE = 2  # cells around the marker, of its six
FRAME_NS = 33_333_333


def picture() -> np.ndarray:
    known = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    drawn = cv2.aruco.generateImageMarker(known, MARKER.number, 240)
    edge = 40 * WHITE
    return cv2.copyMakeBorder(drawn, edge, edge, edge, edge, cv2.BORDER_CONSTANT, value=255)


PRINTED = picture()


def rendered(pose: Pose, hidden: bool) -> np.ndarray:
    """The marker on a grey table, its middle in the origin."""
    image = np.full((480, 640), 120, np.uint8)
    if not hidden:
        side = MARKER.width_m / 240
        half = (len(PRINTED) - 1) / 2
        flat = np.array([[side, 0, -half * side], [0, -side, half * side], [0, 0, 1]])
        seen = CAMERA.matrix @ np.column_stack([pose.rotation[:, :2], pose.translation])
        cv2.warpPerspective(PRINTED, seen @ flat, (640, 480), image,
                            cv2.INTER_AREA, cv2.BORDER_TRANSPARENT)  # fmt: skip
    noise = np.random.default_rng(len(str(pose.translation))).normal(0, 2, image.shape)
    grey = np.clip(cv2.GaussianBlur(image, (3, 3), 0.6) + noise, 0, 255).astype(np.uint8)
    return cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR)


def place(number: int) -> Pose:
    """A slow walk around the table."""
    angle = number / 60
    return seen_from((0.7 * np.sin(angle), -0.75 * np.cos(angle), 0.5 + 0.05 * np.sin(3 * angle)))


class Walk:
    """What the camera sees, and a world that it is shown to."""

    def __init__(self, **declared) -> None:
        self.room, self.number = StandIn(), 0
        self.world = World(MARKER, room=True, **declared)
        self.world.begin(self.room)

    def go(self, count: int, *, hidden: bool = False, room: bool | str = True):
        """Frames on; ``room``: whether it is tracked, or why not. The errors of each, in share of
        the distance."""
        errors = []
        for _ in range(count):
            pose = place(self.number)
            self.room.where.append(in_map(pose) if room is True else room or "initializing")
            at_ns = self.number * FRAME_NS
            frame = Frame(rendered(pose, hidden), self.number, at_ns, CAMERA)
            self.world.thread.hand(frame)
            assert self.world.thread.settle()
            self.world.show(frame, 1 + at_ns)
            self.number += 1
            errors.append(off(self.world.pose, pose) if self.world.tracked else np.nan)
        return np.array(errors)


def off(found: Pose, pose: Pose) -> float:
    turn, move = apart(found, pose)
    return max(turn, move / float(np.linalg.norm(pose.translation)))


@pytest.fixture
def walk():
    made = []

    def make(**declared):
        made.append(Walk(**declared))
        return made[-1]

    yield make
    for each in made:
        each.world.end()


def test_out_of_the_markers_sight_the_room_goes_on_in_its_metres(walk):
    a = walk()
    a.go(30)
    errors = a.go(40, hidden=True)
    assert a.world.tracked
    assert np.nanmax(errors) < 0.01
    assert not np.isnan(errors).any()
    assert (a.world.scale_known, a.world.scale_source) == (True, "marker")


def test_without_the_room_it_would_be_lost(walk):
    a = walk()
    a.go(30, room=False)
    assert a.world.tracked
    assert np.isnan(a.go(20, hidden=True, room=False)[-1])


def test_before_the_marker_was_ever_seen_the_room_is_one_by_a_guess(walk):
    a = walk()
    a.room.find(table())
    a.go(20, hidden=True)
    assert a.world.tracked
    assert a.world.scale_source == "guess"
    x, y = 320.0, 300.0
    anchor = a.world.anchor(a.world.hit(x, y))
    a.go(1)  # comes into sight: until it is tied the room goes on
    assert (a.world.tracked, a.world.scale_source) == (True, "guess")
    errors = a.go(20)
    assert a.world.scale_source == "marker"
    assert errors[-5:].max() < 0.01
    pose = place(20)
    ray = pose.rotation.T @ CAMERA.rays(np.array([[x, y]]))[0]
    meant = pose.position - pose.position[2] / ray[2] * ray  # on the table
    assert anchor.pose.translation == pytest.approx(meant, abs=0.03)
    assert a.world.origin.pose.translation == pytest.approx(np.zeros(3), abs=0.01)


@pytest.mark.parametrize("hidden", [True, False])
def test_a_lens_that_the_room_finds_is_the_targets_too(walk, hidden):
    a = walk()
    a.go(30, hidden=hidden)
    lenses = []
    targets = a.world.thread.tracker.targets
    advance = targets.advance

    def looked(image, camera, sequence=0, at_s=None):
        lenses.append(camera.fx)
        return advance(image, camera, sequence, at_s)

    targets.advance = looked
    a.room.map.zoom(1.1)
    a.room.map.number += 1
    a.go(2 * LOOK_EVERY, hidden=hidden)
    assert lenses[-1] == pytest.approx(1.1 * CAMERA.fx)
    # out of sight they are looked for now and then; the room knows where the camera is
    assert len(lenses) == (2 if hidden else 2 * LOOK_EVERY)
    assert a.world.camera.fx == pytest.approx(1.1 * CAMERA.fx)


def test_neither_going_nor_coming_is_a_jump(walk):
    a = walk()
    a.go(30)
    turns: list[float] = []
    moves: list[float] = []
    sources: list[str] = []
    before = None
    for hidden in (False, True, False):
        for _ in range(15):
            a.go(1, hidden=hidden)
            now = a.world.pose.after(place(a.number - 1).inverse)  # apart from the true one
            turn, move = apart(now, before or now)
            turns, moves, before = [*turns, turn], [*moves, move], now
            sources.append(a.world.thread.course.at(10**12).found.source)
    other = [n for n in range(1, len(sources)) if sources[n] != sources[n - 1]]
    assert [sources[n] for n in other] == ["room", "target"]
    assert np.degrees(max(turns[n] for n in other)) < 0.05
    assert max(moves[n] for n in other) < 0.001
    assert np.degrees(max(turns)) < 0.3  # what the marker's own pose does from frame to frame
    assert max(moves) < 0.004


def test_the_marker_says_it_again_when_it_is_back(walk):
    a = walk()
    a.go(30)
    a.go(20, hidden=True)
    a.go(25)
    found = a.world.thread.course.at(10**12).found
    assert (found.source, found.target) == ("target", True)


def test_planes_and_rays_are_in_metres_and_in_the_markers_axes(walk):
    a = walk()
    a.go(30)
    assert a.world.found == []
    a.room.find(table())
    a.go(1)
    (plane,) = a.world.changed
    assert plane.size == pytest.approx((0.8, 0.8), rel=0.01)
    assert not plane.guessed
    assert np.degrees(np.arccos(plane.normal[2])) < 0.5
    assert abs(plane.pose.translation[2]) < 0.005
    changes = 0
    for _ in range(20):
        a.go(1, hidden=True)
        changes += len(a.world.changed)
    assert changes == 0
    x, y = CAMERA.pixels(place(a.number - 1).to_camera(np.array([[0.2, 0.1, 0]])))[0]
    hit = a.world.hit(float(x), float(y))
    assert hit.plane.name == "plane 0"
    assert hit.point == pytest.approx((0.2, 0.1, 0), abs=0.006)
    anchor = a.world.anchor(hit)
    a.go(10, hidden=True)
    x, y = CAMERA.pixels(place(a.number - 1).to_camera(np.array([[0.2, 0.1, 0]])))[0]
    assert anchor.at == pytest.approx((x, y), abs=4)
    x, y = CAMERA.pixels(place(a.number - 1).to_camera(np.zeros((1, 3))))[0]
    assert a.world.origin.at == pytest.approx((x, y), abs=4)


def test_before_the_room_is_known_it_is_as_without_one(walk):
    a = walk()
    a.go(8, room="initializing")
    assert a.world.tracked
    x, y = CAMERA.pixels(place(a.number - 1).to_camera(np.array([[0.3, 0.1, 0]])))[0]
    hit = a.world.hit(float(x), float(y))
    assert (hit.plane.name, hit.plane.guessed) == ("ground", False)
    assert hit.point == pytest.approx((0.3, 0.1, 0), abs=0.01)
    assert a.world.on(MARKER) is not None


def test_a_room_that_was_given_up_is_forgotten_and_found_anew(walk):
    a = walk()
    a.go(30)
    a.room.find(table())
    a.go(5, hidden=True)
    anchor = a.world.anchor(a.world.hit(320, 240))
    kept = anchor.pose.translation
    a.room.map = a.room.new_map()
    assert np.isnan(a.go(6, hidden=True)[-1])  # nothing says where that one is
    assert a.world.found == []
    assert anchor.pose.translation == pytest.approx(kept)
    a.go(30)
    assert np.nanmax(a.go(10, hidden=True)) < 0.01
    assert anchor.pose.translation == pytest.approx(kept)  # the world is still the marker's


def test_a_lens_that_is_found_to_be_longer_begins_the_room_anew(walk):
    a = walk()
    a.go(10)
    tracker = a.world.thread.tracker
    targets, lenses = tracker.targets, []
    advance = a.room.advance

    class Longer:
        prepared, views, placed = targets.prepared, targets.views, targets.placed

        def advance(self, image, camera, sequence=0, at_s=None):
            return Tracking(sequence, "lost", None, focal=1.2)

    def looked(image, camera, sequence=0, at_s=None):
        lenses.append(camera.fx)
        return advance(image, camera, sequence, at_s)

    a.room.advance, tracker.targets = looked, Longer()
    before = a.room.map
    a.go(3)
    assert a.room.map is not before
    assert lenses == pytest.approx([1.2 * CAMERA.fx] * 3)


@pytest.mark.parametrize("target", [True, False])
def test_what_is_remembered_around_the_marker_ties_no_map(walk, target):
    a = walk()
    tracker = a.world.thread.tracker
    prepared_, views_ = tracker.targets.prepared, tracker.targets.views

    class Remembering:
        prepared, views, placed = prepared_, views_, {}

        def advance(self, image, camera, sequence=0, at_s=None):
            pose = place(sequence)
            return Tracking(sequence, "tracked", pose, pose, target=target)

    tracker.targets = Remembering()
    a.go(30)
    found = a.world.thread.course.at(10**12).found
    assert found.source == ("target" if target else "views")
    assert (found.layout is not None) == target


def test_a_change_of_source_fades_within_a_moment():
    blend = Blend()
    here, there = FIRST, Pose(FIRST.rotation, FIRST.translation + np.array([0.02, 0, 0]))
    assert blend("target", {"target": here, "room": there}, 0.0) is not None
    shown = [blend("room", {"room": there}, at_s) for at_s in (0.03, 0.15, 0.4)]
    moved = [float(each.translation[0] - here.translation[0]) for each in shown]
    assert moved[0] == pytest.approx(0, abs=1e-9)
    assert 0 < moved[1] < 0.02
    assert blend("target", {"target": here, "room": there}, 0.6).translation[0] == pytest.approx(
        there.translation[0]
    )


def test_a_pose_by_the_marker_stays_in_the_world_and_no_movement_leads_to_another_source():
    small, large = (Setting(m, np.eye(3), np.array([0.1, 0, 0])) for m in (0.8, 1.1))

    def found(source, setting):
        pose = setting.from_camera(FIRST)
        return Located(0, "tracked", pose, setting=setting, source=source)

    by_target = found("target", large)
    carried = by_target.pose_of(found("target", small))
    assert off(large.camera(carried), FIRST) < 1e-6
    assert by_target.pose_of(found("room", large)) is None


def test_a_marker_alone_begins_no_mapping_process():
    before = set(psutil.Process().children(recursive=True))
    world = World(MARKER)
    world.begin()
    assert set(psutil.Process().children(recursive=True)) == before
    assert (world.scale_known, world.scale_source, world.reason) == (True, "marker", "")
    world.end()


@pytest.mark.parametrize("declared", [{}, {"remember": False}])
def test_a_room_around_nothing_that_lies_still_is_refused(declared):
    targets = [MARKER] if declared else []
    with pytest.raises(ConfigError, match="room=True"):
        World(*targets, room=True, **declared)


def test_a_marker_cannot_be_scaled_and_another_run_has_its_room(walk):
    a = walk()
    a.go(20)
    with pytest.raises(AppError, match="the marker says the metres"):
        a.world.scale_by(2)
    again = a.world.fresh()
    room = StandIn()
    again.begin(room)
    again.end()
    assert room.closed == 1
