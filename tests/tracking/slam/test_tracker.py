"""The room tracker on drawn pictures with exact poses, without a process beside it."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from benchmarks.trajectory import aligned as similarity
from benchmarks.trajectory import degrees_between
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.slam import mapper
from heimdall.tracking.slam import tracker as tracking
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker
from tests.tracking.slam.scene import CAMERA, look, texture, walk

STILL = Pose(np.eye(3), np.zeros(3))


@pytest.fixture
def tracker():
    made = RoomTracker(Mapper())
    yield made
    made.close()


def play(tracker, poses, first=0):
    """What was found in each frame, and why not."""
    found = []
    for number, pose in enumerate(poses, first):
        picture = look(pose, seed=number) if isinstance(pose, Pose) else pose
        seen = tracker.advance(picture, CAMERA, number, number / 30)
        found.append((seen, tracker.reason))
    return found


def aligned(found, truth):
    """Errors of place, as shares of the path, and of turns in degrees, after Sim(3) alignment."""
    pairs = [
        (each.pose, true) for (each, _), true in zip(found, truth, strict=True) if each.tracked
    ]
    own = np.array([pose.position for pose, _ in pairs])
    there = np.array([true.position for _, true in pairs])
    to_truth = similarity(own, there)
    off = np.linalg.norm(to_truth.places(own) - there, axis=1)
    path = np.linalg.norm(np.diff([each.position for each in truth], axis=0), axis=1).sum()
    turns = [degrees_between(to_truth.pose(pose).rotation, true.rotation) for pose, true in pairs]
    return np.sqrt((off**2).mean()) / path, np.array(turns)


def test_a_camera_that_moves_is_followed_in_a_room_that_nothing_is_known_of(tracker):
    truth = list(walk(150))
    found = play(tracker, truth)
    states = [each.tracked for each, _ in found]
    first = states.index(True)
    assert first < 25
    assert all(states[first:])
    off, turns = aligned(found, truth)
    assert off < 0.004
    assert np.median(turns) < 0.8
    assert {reason for _, reason in found[:first]} == {"initializing"}
    assert {reason for _, reason in found[first:]} == {""}
    assert len(tracker.map.keyframes) < 40


@pytest.mark.parametrize("model", ["fisheye", "rational"])
def test_a_room_is_followed_through_a_bent_lens(tracker, model):
    bent = (
        replace(CAMERA, fx=300, fy=300, distortion=(-0.01, 0.02, -0.005, 0.001), fisheye=True)
        if model == "fisheye"
        else replace(CAMERA, distortion=(8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9))
    )
    whole = Camera(960, 720, 400.0, 400.0, 479.5, 359.5)  # all that the bent one sees, straight
    x, y = np.meshgrid(np.arange(bent.width), np.arange(bent.height))
    where = whole.pixels(bent.rays(np.stack([x.ravel(), y.ravel()], axis=1))).astype(np.float32)
    x, y = (each.reshape(bent.height, bent.width) for each in where.T)
    truth, found = list(walk(100)), []
    for number, pose in enumerate(truth):
        picture = cv2.remap(look(pose, whole, seed=number), x, y, cv2.INTER_LINEAR)
        found.append((tracker.advance(picture, bent, number, number / 30), tracker.reason))
    states = [each.tracked for each, _ in found]
    first = states.index(True)
    assert first < 30
    assert all(states[first:])
    off, turns = aligned(found, truth)
    assert off < 0.01
    assert np.median(turns) < 0.8


def test_the_same_frames_give_the_same_poses():
    truth = list(walk(60))
    one, other = (play(RoomTracker(Mapper()), truth) for _ in range(2))
    for (a, _), (b, _) in zip(one, other, strict=True):
        assert a.state == b.state
        assert a.pose is None or np.array_equal(a.pose.translation, b.pose.translation)


def test_nothing_begins_where_the_camera_stands_still(tracker):
    assert not any(each.tracked for each, _ in play(tracker, [STILL] * 60))


def test_nothing_begins_where_the_camera_only_turns(tracker):
    poses = [
        Pose(cv2.Rodrigues(np.array([0, 0.25 * np.sin(n / 15), 0]))[0], np.zeros(3))
        for n in range(90)
    ]
    assert not any(each.tracked for each, _ in play(tracker, poses))


def test_a_white_wall_says_what_is_lacking(tracker):
    found = play(tracker, [np.full((360, 480), 230, np.uint8)] * 5)
    assert {(each.state, reason) for each, reason in found} == {("lost", "insufficient features")}


def test_a_covered_lens_is_told_and_the_place_found_again(tracker):
    truth = list(walk(150))
    dark = np.full((360, 480), 8, np.uint8)
    shown = [*truth[:80], *[dark] * 30, *truth[110:]]
    found = play(tracker, shown)
    assert not any(each.tracked for each, _ in found[80:110])
    assert {reason for _, reason in found[80:110]} == {"insufficient features"}
    assert all(each.tracked for each, _ in found[125:])
    off, turns = aligned(found, truth)
    assert off < 0.006
    assert turns.max() < 4


def test_looking_at_something_else_asks_to_come_back(tracker):
    truth = list(walk(150))
    other = np.random.default_rng(5).integers(0, 255, (45, 60), np.uint8)
    strange = cv2.resize(other, (480, 360), interpolation=cv2.INTER_CUBIC)
    found = play(tracker, [*truth[:80], *[strange] * 25, *truth[100:]])
    assert not any(each.tracked for each, _ in found[80:105])
    assert found[104][1] == "relocalizing"
    assert found[-1][0].tracked
    shown = [*truth[:80], *[truth[80]] * 25, *truth[100:]]
    assert aligned(found, shown)[1].max() < 4


def test_a_map_that_is_lost_as_it_has_begun_is_given_up_soon(tracker):
    truth = list(walk(150))
    began = next(n for n, each in enumerate(truth) if play(tracker, [each], n)[0][0].tracked)
    first, dark = tracker.map, np.full((360, 480), 8, np.uint8)
    play(tracker, [dark] * 40, began)
    assert tracker.map is first  # a covered lens says nothing of the map
    other = np.random.default_rng(5).integers(0, 255, (45, 60), np.uint8)
    strange = cv2.resize(other, (480, 360), interpolation=cv2.INTER_CUBIC)
    play(tracker, [strange] * 20, began)
    assert not tracker.map.keyframes
    assert any(each.tracked for each, _ in play(tracker, truth, began))


def test_a_map_is_told_only_once_the_next_frames_have_borne_it_out(tracker):
    truth = list(walk(150))
    began = next(n for n, each in enumerate(truth) if not told(tracker, each, n))
    other = np.random.default_rng(5).integers(0, 255, (45, 60), np.uint8)
    strange = cv2.resize(other, (480, 360), interpolation=cv2.INTER_CUBIC)
    assert not play(tracker, [strange], began + 1)[0][0].tracked
    assert tracker.reason == "initializing"
    assert not tracker.map.keyframes


def told(tracker, pose, number):
    """Whether there is no map that is not told."""
    tracked = play(tracker, [pose], number)[0][0].tracked
    return tracked or not tracker.map.keyframes


def test_a_camera_that_was_covered_while_it_moved_on_is_found_by_features(tracker):
    """From there keyframes' points look too different to be followed."""
    truth = list(walk(60))
    before = play(tracker, truth)
    apart = [swung(angle) for angle in np.linspace(0.62, 0.8, 30)]
    assert tracker.map.away(apart[0]).min() > 1
    found = play(tracker, [*[np.full((360, 480), 8, np.uint8)] * 25, *apart], 60)
    assert not any(each.tracked for each, _ in found[:25])
    assert found[-1][0].tracked
    off, turns = aligned([*before, *found[25:]], [*truth, *apart])
    assert off < 0.01
    assert turns.max() < 2


def swung(angle: float) -> Pose:
    """A camera that has gone that far around what stands in the middle of the room."""
    turn = cv2.Rodrigues(np.array([0.0, angle, 0.0]))[0]
    middle = np.array([0.0, 0.2, 2.4])
    return Pose(turn, middle - turn @ middle)


def test_a_map_outlives_a_long_loss(tracker, monkeypatch):
    """The phone lay on the table for minutes."""
    monkeypatch.setattr(tracking, "MOST_LOST", 30)
    truth = list(walk(100))
    before = play(tracker, truth)
    first, dark = tracker.map, np.full((360, 480), 8, np.uint8)
    away = play(tracker, [dark] * 70, 100)
    assert not any(each.tracked for each, _ in away)
    assert tracker.map is first
    found = play(tracker, truth[::-1], 200)
    assert tracker.map is first
    states = [each.tracked for each, _ in found]
    assert all(states[states.index(True) :])
    assert states.index(True) < 20
    off, turns = aligned([*before, *found], [*truth, *truth[::-1]])
    assert off < 0.006
    assert turns.max() < 4


def test_a_picture_of_another_size_begins_anew_and_the_map_is_found_again(tracker):
    truth = list(walk(60))
    play(tracker, truth)
    first = tracker.map
    assert first.keyframes
    small = Camera(320, 240, 260.0, 260.0, 159.5, 119.5)
    for number in range(61, 66):
        assert not tracker.advance(look(STILL, small), small, number).tracked
    assert not tracker.map.keyframes
    assert tracker.reason == "initializing"
    found = play(tracker, truth[::-1], 66)
    assert tracker.map is first
    assert found[-1][0].tracked


def test_another_room_has_a_map_of_its_own_and_the_first_is_found_again(tracker, monkeypatch):
    monkeypatch.setattr(tracking, "MOST_LOST", 30)
    truth = list(walk(100))
    before = play(tracker, truth)
    first = tracker.map
    other = [texture(seed) for seed in range(20, 24)]
    elsewhere = [look(pose, seed=n, textures=other) for n, pose in enumerate(walk(150))]
    there = play(tracker, elsewhere, 100)
    assert {reason for _, reason in there[10:30]} == {"relocalizing"}
    assert there[-1][0].tracked
    second = tracker.map
    assert second is not first
    found = play(tracker, truth[::-1], 300)
    assert tracker.map is first
    assert found[-1][0].tracked
    back = next(n for n, (each, _) in enumerate(found) if each.tracked and tracker.map is first)
    assert back < 60
    same = [(each, true) for each, true in zip(found[60:], truth[::-1][60:], strict=True)]
    off, turns = aligned(
        [*before, *(each for each, _ in same)], [*truth, *(true for _, true in same)]
    )
    assert off < 0.01
    assert turns.max() < 4
    again = play(tracker, elsewhere[::-1], 500)
    assert tracker.map is second
    assert again[-1][0].tracked


def test_a_map_that_lasts_for_hours_does_not_grow(tracker, monkeypatch):
    """Ids of points are never given twice: those that live are numbered from 0 again."""
    monkeypatch.setattr(tracking, "MOST_IDS", 900)
    truth = list(walk(240, reach=0.6))
    found = play(tracker, truth)
    states = [each.tracked for each, _ in found]
    assert all(states[states.index(True) :])
    assert tracker.map.number > 3
    assert tracker._next_id < 2500
    off, turns = aligned(found, truth)
    assert off < 0.006
    assert turns.max() < 4


def test_points_that_are_numbered_again_are_what_they_were(tracker):
    play(tracker, list(walk(100)))
    known = tracker.map
    points = known.points

    def looks(each):
        there = np.isfinite(points.spread[each.ids])
        return points.position[each.ids[there]], each.pixels[there]

    before = {number: looks(each) for number, each in known.keyframes.items()}
    count = known.renumber()
    assert count == len(points) == np.isfinite(points.spread).sum()
    for number, (places, pixels) in before.items():
        each = known.keyframes[number]
        order = np.lexsort(each.pixels.T), np.lexsort(pixels.T)
        assert np.array_equal(points.position[each.ids][order[0]], places[order[1]])
        assert each.features is None or each.features[0].max(initial=-1) < count


def test_frames_that_come_twice_change_nothing(tracker):
    truth = [pose for pose in walk(80) for _ in range(2)]
    found = play(tracker, truth)
    off, _ = aligned(found, truth)
    assert off < 0.004


def test_a_long_walk_keeps_few_keyframes_and_its_place(tracker, monkeypatch):
    """What a keyframe saw that is dropped hangs on others, and the camera is followed by those."""
    monkeypatch.setattr(mapper, "MOST_KEYFRAMES", 4)
    monkeypatch.setattr(mapper, "RECENT", 2)
    truth = list(walk(240, reach=0.6))
    found = play(tracker, truth)
    assert max(tracker.map.keyframes) > 7
    assert len(tracker.map.keyframes) <= 5
    known, points = tracker.map.keyframes, tracker.map.points
    anchors = points.anchor[np.isfinite(points.spread)]
    assert set(anchors.tolist()) <= set(known)
    first = [each.tracked for each, _ in found].index(True)
    assert all(each.tracked for each, _ in found[first:])
    assert aligned(found, truth)[0] < 0.004
