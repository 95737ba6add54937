"""A world without targets: the room, by a stand-in for its tracker, and on the bundled page."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest

from heimdall.capture import Frame, Pose
from heimdall.tracking import Marker, Plane, World, WorldAnchor
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker

from .standin import (
    FIRST,
    FRAME_NS,
    HEIGHT,
    LENS,
    OTHER,
    SECOND,
    UNIT,
    StandIn,
    in_map,
    pixel,
    points_in_map,
    seen_from,
    table,
)

# --- what is told --------------------------------------------------------------------------------


def test_why_it_is_not_tracked_is_said(run):
    a = run()
    assert (a.world.state, a.world.reason) == ("lost", "initializing")
    for reason in ("initializing", "excessive motion", "relocalizing"):
        world = a.show(reason)
        assert (world.state, world.reason) == ("lost", reason)
    assert (a.show().state, a.world.reason) == ("tracked", "")
    assert World(Marker("DICT_4X4_50", 7, 0.08)).reason == ""


def test_planes_are_found_and_told_once_and_again_when_they_have_changed(run):
    a = run(camera_height_m=HEIGHT)
    assert a.show().found == []
    a.tracker.find(table())
    (plane,) = a.show().changed
    assert a.world.found == [plane]
    assert (plane.name, plane.kind, plane.guessed) == ("plane 0", "horizontal", False)
    assert plane.size == pytest.approx((0.8, 0.8))
    assert np.ptp(plane.outline, axis=0) == pytest.approx((0.8, 0.8))
    assert a.show().changed == []
    a.tracker.find(table(reach=0.405))
    assert a.show().changed == []  # too little to see
    a.tracker.find(table(reach=0.7))
    (grown,) = a.show().changed
    assert (grown.name, max(grown.size)) == ("plane 0", pytest.approx(1.4))
    a.tracker.find()
    assert a.show().found == []


def test_the_points_of_its_map_are_where_they_are_in_the_world(run):
    a = run(camera_height_m=HEIGHT)
    assert len(a.world.points) == 0
    a.tracker.find(table())
    points = a.show().points
    assert len(points) == 15 * 15
    assert points[:, 2] == pytest.approx(0, abs=1e-6)
    assert np.ptp(points, axis=0)[:2] == pytest.approx((0.8, 0.8))


def test_the_cameras_way_goes_with_the_world_and_ends_with_its_map(run):
    a = run()
    a.show(count=3)  # before there is a plane: other axes, other metres
    a.tracker.find(table())
    a.show(SECOND)
    world = a.show("relocalizing", 2)
    times = 0.5 / HEIGHT  # the guess
    assert len(world.path) == 2
    apart = times * np.linalg.norm(FIRST.position - SECOND.position)
    assert np.linalg.norm(np.diff(world.path, axis=0)) == pytest.approx(apart)
    assert world.path[:, 2] == pytest.approx((0.5, 0.5 * times))
    world.scale_by(2.0)
    assert a.show(SECOND).path[:, 2] == pytest.approx((1.0, times))
    a.tracker.forget()
    assert len(a.show().path) == 1


def test_what_stands_on_a_plane_goes_with_it_where_that_is_known_better(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table(lift=0.012))
    world = a.show()
    hit = world.hit(*pixel((0.2, 0.1, 0)))
    turned = Pose(hit.pose.rotation @ np.diag([-1.0, 1, -1]), hit.point)
    above = Pose(hit.pose.rotation, hit.point + np.array([0, 0, 0.1]))
    put = [world.anchor(each) for each in (hit, turned, above)]
    seen = [each.at for each in put]
    a.tracker.find(table())
    assert a.show(FIRST).changed == []  # too little to be told
    assert [each.at for each in put] == [pytest.approx(each, abs=0.01) for each in seen]
    level = world.found[0].pose.translation[2]
    assert level < -0.005
    assert [each.pose.translation[2] for each in put[:2]] == pytest.approx([level, level])
    assert put[1].pose.rotation == pytest.approx(turned.rotation, abs=1e-6)
    assert put[2].pose.translation == pytest.approx(above.translation, abs=1e-6)
    before = world.pose.to_camera(put[0].pose.translation)
    a.tracker.find(table(lift=0.5))  # another one, whatever it is called
    a.show(FIRST)
    assert world.pose.to_camera(put[0].pose.translation) == pytest.approx(before)


def test_a_lens_that_is_found_to_be_longer_leaves_what_stands_there_in_the_picture(run):
    a = run()
    a.tracker.find(table())
    world = a.show()
    hit = world.hit(*pixel((0.2, 0.1, 0)))
    put = [world.anchor(each) for each in (hit, Pose(hit.pose.rotation, hit.point + 0.1))]
    seen = [each.at for each in put]
    a.tracker.map.zoom(1.25)
    a.tracker.map.number += 1
    world = a.show()
    assert world.camera.fx == pytest.approx(1.25 * LENS.fx)
    assert [each.at for each in put] == [pytest.approx(each, abs=0.01) for each in seen]


# --- what a plane hides ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "hidden"),
    [
        ((0.1, 0.1, 0.0), False),  # on the table
        ((0.1, 0.1, 0.2), False),  # above it
        ((0.0, 0.1, -0.5), True),  # on the floor, behind it
        ((0.0, -0.6, -0.5), False),  # on the floor, before it
        ((0.0, 0.1, -0.004), False),  # as deep as the table is known well
    ],
)
def test_a_table_hides_what_lies_behind_it(run, place, hidden):
    a = run(camera_height_m=HEIGHT)
    anchor = a.world.anchor(Pose(np.eye(3), np.array(place, float)))
    assert not anchor.hidden  # nothing is known
    a.tracker.find(table())
    world = a.show()
    assert WorldAnchor(world, Pose(np.eye(3), np.array(place, float))).hidden == hidden
    below = seen_from((0.0, -0.1, -0.4), (0.0, 0.1, 0.3))
    a.show(below)
    (plane,) = world.found
    assert plane.hides(np.array([0.0, 0.2, 0.3]), below.position)  # from below, too
    assert not plane.hides(np.array([1.5, 0.2, 0.3]), below.position)


def test_a_plane_hides_no_farther_than_its_outline():
    corners = np.array([[-0.4, -0.4], [0.4, -0.4], [-0.4, 0.4]])
    turned = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    half = Plane(Pose(turned, np.zeros(3)), (0.8, 0.8), outline=corners)
    eye = np.array([0.0, 0.0, 1.0])
    seen = [half.hides(np.array([x, y, -1e-6 - 0.5]), eye) for x, y in ((-0.3, 0.3), (0.3, -0.3))]
    assert sorted(seen) == [False, True]
    assert Plane(Pose(turned, np.zeros(3))).hides(np.array([9.0, 9.0, -0.5]), eye)
    assert not half.hides(np.array([1.0, 1.0, 1.0]), eye)  # along it


# --- what a ray meets ----------------------------------------------------------------------------


def test_a_ray_meets_the_plane_that_was_found(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    hit = a.show().hit(*pixel((0.2, 0.1, 0)))
    assert hit.point == pytest.approx((0.2, 0.1, 0), abs=1e-9)
    assert (hit.plane.name, hit.instant) == ("plane 0", False)
    assert hit.pose.rotation[:, 1] == pytest.approx((0, 0, 1), abs=1e-9)


def test_before_there_is_a_plane_it_ends_as_far_away_as_what_is_seen_there(run):
    a = run()
    world = a.show()
    hit = world.hit(*pixel((0.1, 0.05, 0)))
    assert hit.instant
    assert hit.plane.guessed
    true = np.linalg.norm(np.subtract((0.1, 0.05, 0), FIRST.position))
    assert hit.distance == pytest.approx(true / UNIT, rel=0.05)  # a unit is taken to be a metre
    assert world.anchor(hit).at == pytest.approx(pixel((0.1, 0.05, 0)), abs=0.1)


def test_beyond_what_was_seen_of_it_the_ground_goes_on(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table(reach=0.1))
    hit = a.show().hit(*pixel((0.3, 0.2, 0)))
    assert hit.point == pytest.approx((0.3, 0.2, 0), abs=1e-9)
    assert (hit.plane.name, hit.instant) == ("ground", True)


def test_a_world_whose_ground_ends_has_only_points_there(run):
    a = run(camera_height_m=HEIGHT, ground=False)
    a.tracker.find(table(reach=0.1))
    hit = a.show().hit(*pixel((0.3, 0.2, 0)))
    assert (hit.plane.name, hit.instant) == ("guess", True)
    assert hit.point == pytest.approx((0.3, 0.2, 0), abs=0.05)


def test_what_stands_on_the_ground_is_nearer_than_that(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table(reach=0.1))
    box = np.array([0.3, 0.1, 0.2]) + 0.02 * np.random.default_rng(1).normal(size=(20, 3))
    known = a.tracker.map.points
    known.position[300:320], known.spread[300:320] = points_in_map(box), 0.01
    known.spread[:300] = np.inf
    a.tracker.map.number += 1
    hit = a.show().hit(*pixel((0.3, 0.1, 0.2)))
    assert hit.instant
    assert hit.point == pytest.approx((0.3, 0.1, 0.2), abs=0.04)


def test_where_nothing_is_known_it_is_a_guess_and_still_a_place(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    hit = a.show().hit(320, -200)  # above the horizon
    assert (hit.plane.name, hit.instant) == ("guess", True)
    assert 0.2 < hit.distance < 5


def test_a_rehearsal_meets_something_too_and_is_forgotten(run):
    a = run()
    camera = a.world.rehearse(LENS)
    assert camera.pose is not None
    hit = a.world.hit(320, 240)
    assert np.isfinite(hit.point).all()
    assert a.world.anchor(hit).at == pytest.approx((320, 240), abs=0.1)
    a.world.forget()
    assert a.world.hit(320, 240) is None


# --- anchors -------------------------------------------------------------------------------------


def test_an_anchor_goes_with_the_map_when_that_is_adjusted(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    place = pixel((0.2, 0.1, 0))
    world = a.show()
    anchor = world.anchor(world.hit(*place))
    before = anchor.pose.translation
    a.tracker.adjust(OTHER)
    a.tracker.where.append(in_map(FIRST).after(OTHER))  # the camera stands still
    a.look()
    assert anchor.at == pytest.approx(place, abs=1e-6)
    assert np.linalg.norm(anchor.pose.translation - before) > 0.01
    raw = world.camera.pixels(world.pose.to_camera(before[None]))[0]
    assert np.linalg.norm(raw - place) > 5  # where it would be, if it did not


def test_each_picture_has_the_map_of_its_own_moment(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    place = pixel((0.2, 0.1, 0))
    world = a.show(count=4)
    anchor = world.anchor(world.hit(*place))
    earlier = Frame(np.zeros((480, 640, 3), np.uint8), 3, 3 * FRAME_NS, LENS)
    a.tracker.adjust(OTHER)
    a.tracker.where.append(in_map(FIRST).after(OTHER))
    later = Frame(earlier.image, 4, 4 * FRAME_NS, LENS)
    world.thread.hand(later)
    assert world.thread.settle()
    world.show(replace(earlier, sequence=99), 10**9)  # drawn while the next one is looked at
    assert anchor.at == pytest.approx(place, abs=1e-6)
    world.show(later, 2 * 10**9)
    assert anchor.at == pytest.approx(place, abs=1e-6)


def test_an_adjustment_is_no_movement_that_goes_on(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    world = a.show(count=6)
    place = pixel((0.2, 0.1, 0))
    anchor = world.anchor(world.hit(*place))
    a.tracker.adjust(OTHER)
    a.tracker.where.append(in_map(FIRST).after(OTHER))
    a.look()
    ahead = Frame(np.zeros((480, 640, 3), np.uint8), 50, (a.number + 1) * FRAME_NS, LENS)
    world.show(ahead, 10**9)
    assert world.ahead_ms > 0
    assert anchor.at == pytest.approx(place, abs=1e-6)


def test_an_anchor_outlives_its_keyframe(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    world = a.show()
    place = pixel((0.2, 0.1, 0))
    anchor = world.anchor(world.hit(*place))
    del a.tracker.map.keyframes[0]
    a.tracker.adjust(OTHER)
    a.tracker.where.append(in_map(FIRST).after(OTHER))
    a.look()
    assert anchor.at == pytest.approx(place, abs=1e-6)
    a.tracker.adjust(OTHER)
    a.tracker.where.append(in_map(FIRST).after(OTHER).after(OTHER))
    a.look()
    assert anchor.at == pytest.approx(place, abs=1e-6)


def test_what_was_placed_before_there_was_a_plane_moves_onto_it(run):
    a = run(camera_height_m=HEIGHT)
    known = a.tracker.map.points
    away = known.position - in_map(FIRST).position
    known.position += 0.15 * away  # the map was too large there
    a.tracker.map.number += 1
    world = a.show()
    place = pixel((0.2, 0.1, 0))
    anchor = world.anchor(world.hit(*place))
    assert anchor.scale == pytest.approx(1)
    a.tracker.find(table())
    a.show()
    assert anchor.pose.translation == pytest.approx((0.2, 0.1, 0), abs=1e-9)
    assert anchor.at == pytest.approx(place, abs=1e-6)  # along the ray of the tap
    assert anchor.scale == pytest.approx(1)
    a.show(SECOND)
    assert anchor.at == pytest.approx(pixel((0.2, 0.1, 0), SECOND), abs=1e-6)


def test_it_does_not_jump_to_a_plane_far_behind(run):
    a = run(camera_height_m=HEIGHT)
    world = a.show()
    place = pixel((0.2, 0.1, 0))
    anchor = world.anchor(world.hit(*place))
    a.tracker.find(table(lift=-0.6, reach=2.0))
    a.show()
    known = np.linalg.norm(np.subtract((0.2, 0.1, 0), FIRST.position))
    now = np.linalg.norm(anchor.pose.translation - a.world.pose.position)
    assert now / a.world.pose.position[2] == pytest.approx(known / (2 * HEIGHT), rel=0.05)
    assert world.hit(*place).distance > 1.5 * now


def test_the_origin_is_where_the_camera_looked_first_and_keeps_that_place(run):
    a = run()
    origin = a.world.origin
    a.show()
    assert origin.at == pytest.approx((319.5, 239.5), abs=0.5)
    a.tracker.find(table())
    a.show()
    assert origin.at == pytest.approx((319.5, 239.5), abs=0.5)
    assert origin.pose.translation == pytest.approx(np.zeros(3), abs=1e-9)
    a.tracker.adjust(OTHER)
    a.tracker.where.append(in_map(FIRST).after(OTHER))
    a.look()
    assert origin.at == pytest.approx((319.5, 239.5), abs=0.5)


def test_another_map_is_another_world(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    world = a.show()
    anchor = world.anchor(world.hit(320, 240))
    before = anchor.pose
    assert not anchor.lost
    a.tracker.map = a.tracker.new_map()
    a.show()
    assert world.found == []
    assert not world.scale_known
    assert anchor.pose is before
    assert anchor.lost
    assert not world.origin.lost
    a.tracker.find(table())
    assert a.show().scale_known


# --- the end -------------------------------------------------------------------------------------


def test_the_tracker_is_closed_at_the_end_and_twice_is_allowed(run):
    a = run()
    a.show()
    a.world.end()
    assert a.tracker.closed == 1
    a.world.end()
    assert a.tracker.closed == 1
    assert a.world.found == []


def test_no_process_and_no_thread_is_left(page_frames):
    before = set(psutil.Process().children(recursive=True)), set(threading.enumerate())
    world = World()
    world.begin()
    for frame in page_frames(0, 30):
        world.thread.hand(frame)
        assert world.thread.settle(60)
        world.show(frame, 1 + frame.captured_ns)
        if world.tracked:
            break
    assert world.tracked
    assert len(psutil.Process().children(recursive=True)) > len(before[0])  # the map's process
    world.end()
    assert set(psutil.Process().children(recursive=True)) <= before[0]
    assert set(threading.enumerate()) <= before[1]


def test_a_map_whose_process_is_killed_is_told_and_the_room_still_tracked(page_frames):
    world = World()
    world.begin()
    children = psutil.Process().children
    before = set(children(recursive=True))
    for frame in page_frames(0, 60):
        world.thread.hand(frame)
        assert world.thread.settle(60)
        world.show(frame, 1 + frame.captured_ns)
        if world.tracked and not world.problem:
            for each in before & set(children(recursive=True)):
                each.kill()
                each.wait()
        if world.problem:
            time.sleep(1 / 15)  # the camera goes on while another process starts
    assert "it ended; another one goes on" in world.problem
    assert world.tracked
    world.end()


def test_a_tap_before_the_room_is_known_begins_a_world_there(page_frames):
    frames = page_frames(60, 8)
    world, tracker = World(), StandIn()
    tracker.where = ["initializing"]
    world.begin(tracker)

    def show(frame):
        world.thread.hand(frame)
        assert world.thread.settle()
        world.show(frame, 1 + frame.captured_ns)

    show(frames[0])
    assert world.surface_at(300, 260).guessed
    for each in frames[1:]:
        show(each)
    assert world.tracked
    assert tracker.closed
    assert (world.reason, world.found, world.scale_known) == ("", [], False)
    assert world.hit(200, 300).plane.name in ("picture", "ground")
    world.end()


def test_a_tap_in_a_room_that_is_tracked_answers_with_what_is_there(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    world = a.show()
    assert world.surface_at(*pixel((0.1, 0, 0))).name == "plane 0"
    assert a.tracker.closed == 0
    assert world.surface_at(320, -200).name == "guess"


def test_a_room_of_a_clip_agrees_with_the_marker_in_it(page_frames):
    """The room tracker knows nothing of the marker that lies on the table of this clip."""
    room, marker = World(), World(Marker("DICT_4X4_50", 7, 0.08), remember=False)
    room.begin(RoomTracker(Mapper()))
    marker.begin()
    heights, off = [], []
    anchor = None
    for frame in page_frames(0, 70):
        for world in (room, marker):
            world.thread.hand(frame)
            assert world.thread.settle(60)
            world.show(frame, 1 + frame.captured_ns)
        if room.found and anchor is None:
            anchor = room.anchor(room.hit(*marker.origin.at))
        if anchor is not None and marker.tracked:
            assert room.tracked
            ground = room.found[0]
            away = ground.normal @ (room.pose.position - ground.pose.translation)
            heights.append(away / marker.pose.position[2])
            off.append(np.linalg.norm(np.subtract(anchor.at, marker.origin.at)))
    assert len(off) > 40
    assert np.ptp(heights) < 0.05 * np.mean(heights)
    assert np.median(off) < 1.5
    assert max(off) < 4
    up = room.pose.rotation[:, 2] @ marker.pose.rotation[:, 2]
    assert np.degrees(np.arccos(min(up, 1))) < 2
    room.end()
    marker.end()
