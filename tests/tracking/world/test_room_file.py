"""A room's map in a file: found again in the next run, and refused where it is damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest

from heimdall.capture.pose import Pose
from heimdall.errors import ConfigError
from heimdall.tracking import Marker, World
from heimdall.tracking.slam import tracker as tracking
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker
from heimdall.tracking.world import room_file
from heimdall.tracking.world.layout import Layout
from heimdall.tracking.world.locator import Locator
from heimdall.tracking.world.room import Room
from tests.tracking.slam.scene import CAMERA, look, texture, walk

WALK = list(walk(100))
STILL = Pose(np.eye(3), np.zeros(3))


def play(tracker, room, numbers, seed=0):
    """What is located in each frame, and the pose in the world."""
    locator, found = Locator(tracker), []
    for number in numbers:
        located = locator.advance(look(WALK[number], seed=seed + number), CAMERA, number)
        found.append((located, room.see(located.layout, located.pose)))
    return found


@pytest.fixture(scope="module")
def first():
    """A run: its room, and the camera's pose in the world in each frame."""
    room = Room(1.2)
    found = play(RoomTracker(Mapper()), room, range(len(WALK)))
    return room, [pose for _, pose in found]


@pytest.fixture
def file(first, tmp_path):
    path = tmp_path / "room.npz"
    room_file.save(path, first[0].kept, None)
    return path


def test_the_next_run_finds_the_camera_where_it_was(first, file):
    kept = room_file.load(file)
    tracker, room = RoomTracker(Mapper(), kept.map), Room(known=kept)
    assert tracker.reason == "relocalizing"
    numbers = range(85, 45, -1)  # another start, the other way
    found = play(tracker, room, numbers, seed=1000)
    states = [each.tracked for each, _ in found]
    begun = states.index(True)
    assert begun < 6
    assert all(states[begun:])
    assert room.scale_known == first[0].scale_known
    metres = kept.setting.metres
    for number, (_, pose) in list(zip(numbers, found, strict=True))[begun:]:
        before = first[1][number]
        assert np.linalg.norm(pose.position - before.position) < 0.01 * metres
        cosine = (np.trace(pose.rotation @ before.rotation.T) - 1) / 2
        assert np.degrees(np.arccos(min(cosine, 1))) < 0.7


def test_all_of_a_map_comes_back(first, file):
    known, kept = first[0].kept, room_file.load(file)
    assert set(kept.map.keyframes) == set(known.map.keyframes)
    for number, each in kept.map.keyframes.items():
        assert np.array_equal(each.picture.grey, known.map.keyframes[number].picture.grey)
        assert np.array_equal(each.pose.translation, known.map.keyframes[number].pose.translation)
    assert [each.id for each in kept.map.planes.planes] == [
        each.id for each in known.map.planes.planes
    ]
    assert any(each.features for each in kept.map.keyframes.values())
    assert kept.setting.metres == known.setting.metres


def test_another_room_begins_anew_and_says_so(file, monkeypatch):
    monkeypatch.setattr(tracking, "MOST_LOST", 12)
    kept = room_file.load(file).map
    tracker = RoomTracker(Mapper(), kept)
    rough = np.random.default_rng(5).integers(0, 255, (45, 60), np.uint8)
    strange = cv2.resize(rough, (480, 360), interpolation=cv2.INTER_CUBIC)
    for number in range(14):
        assert not tracker.advance(strange, CAMERA, number).tracked
        assert tracker.reason == "relocalizing"
    assert tracker.map is kept  # the camera is looked for in it ever after
    assert "was not found in it; it is kept" in tracker.problem


def test_a_map_that_was_not_found_is_never_overwritten(first, file):
    """Two starts with the lens covered, or in another room."""
    before = file.read_bytes()
    for _ in range(2):
        known = room_file.load(file)
        room_file.save(file, first[0].kept, known)
        assert file.read_bytes() == before
    assert room_file.load(file.with_suffix(".other.npz")).map.keyframes


def test_a_room_keeps_the_map_it_began_with_where_the_camera_was_found_in_it(first, file):
    known = room_file.load(file)
    other = first[0]
    room = Room(known=known)
    room.see(Layout.of(known.map), None)  # it is looked for
    room.see(other.layout, STILL)
    assert room.kept.map is other.layout.map
    room.see(Layout.of(known.map), STILL)
    room.see(other.layout, STILL)
    assert room.kept.map is known.map


def test_content_is_there_again_once_the_camera_is_back(monkeypatch):
    monkeypatch.setattr(tracking, "MOST_LOST", 30)
    tracker, room = RoomTracker(Mapper()), Room(1.2)
    play(tracker, room, range(len(WALK)))
    pose = room.setting.camera(tracker._pose)
    hung = room.hang(Pose(np.eye(3), pose.to_world(np.array([[0.0, 0.0, 1.5]]))[0]), pose)
    there, metres = hung.pose, room.setting.metres
    textures = [texture(seed) for seed in range(20, 24)]
    locator = Locator(tracker)
    for number, each in enumerate(walk(150), len(WALK)):
        located = locator.advance(look(each, seed=number, textures=textures), CAMERA, number)
        room.see(located.layout, located.pose)
    assert located.tracked
    assert not hung.known
    for number in range(80, 20, -1):
        located = locator.advance(look(WALK[number], seed=number), CAMERA, 400 - number)
        room.see(located.layout, located.pose)
    assert located.tracked
    assert hung.known
    assert room.setting.metres == metres
    assert np.linalg.norm(hung.pose.translation - there.translation) < 0.02 * metres


def test_a_map_that_could_not_be_read_again_is_not_written(first, file):
    before = file.read_bytes()
    spoilt = room_file.load(file)
    keyframe = next(iter(spoilt.map.keyframes.values()))
    keyframe.pixels = keyframe.pixels + 10_000
    with pytest.raises(ConfigError, match="is not kept"):
        room_file.save(file, spoilt, spoilt)
    assert file.read_bytes() == before


def test_a_world_keeps_its_room_and_begins_with_it(first, tmp_path):
    path = tmp_path / "world.npz"
    world = World(map=path)
    follower = RoomTracker(Mapper(), first[0].kept.map)
    world.begin(following=follower)
    try:
        world._room.see(Locator(follower).advance(look(WALK[0]), CAMERA).layout, None)
    finally:
        world.end()
    assert room_file.load(path).map.keyframes
    again = World(map=path)
    again.begin()
    try:
        assert again.thread is not None
    finally:
        again.end()
    with pytest.raises(ConfigError, match="of a room, not of targets: give this world another map"):
        World(Marker("DICT_4X4_50", 7, width_m=0.08), map=path).begin()


# --- what is damaged -------------------------------------------------------------------------


def words(parts, **changes):
    told = json.loads(parts["room"].tobytes()) | changes
    return {"room": np.frombuffer(json.dumps(told).encode(), np.uint8)}


def keyframes(parts):
    return json.loads(parts["room"].tobytes())["keyframes"]


DAMAGES = {
    "another version": (lambda p: words(p, version=99), "another version"),
    "of targets": (lambda p: {"room": None}, "of targets, not of a room"),
    "no words": (lambda p: {"room": np.zeros(4, np.uint8)}, "cannot be read"),
    "one keyframe": (lambda p: words(p, keyframes=keyframes(p)[:1]), "so many keyframes"),
    "a keyframe twice": (lambda p: words(p, keyframes=keyframes(p) * 2), "share a number"),
    "a name": (lambda p: words(p, keyframes=[["a", *e[1:]] for e in keyframes(p)]), "no number"),
    "no depth": (lambda p: words(p, keyframes=[[e[0], -1, *e[2:]] for e in keyframes(p)]),
                 "no depth"),
    "large pictures": (lambda p: words(p, keyframes=[[*e[:3], [9999, *e[3][1:]]]
                                                     for e in keyframes(p)]), "lens"),
    "a lens of no kind": (lambda p: words(p, keyframes=[[*e[:3], [*e[3][:6], [0.1] * 3]]
                                                        for e in keyframes(p)]), "lens"),
    "a fisheye of five": (lambda p: words(p, keyframes=[[*e[:3], [*e[3][:6], [0.1] * 5, True]]
                                                        for e in keyframes(p)]), "lens"),
    "a pose missing": (lambda p: {"pose 0": None}, "pose 0 is missing"),
    "a pose that is none": (lambda p: {"pose 0": np.ones((3, 4))}, "pose 0 is no pose"),
    "not finite": (lambda p: {"pose 0": np.full((3, 4), np.nan)}, "pose 0 is not finite"),
    "places elsewhere": (lambda p: {"position": p["position"][:-1]}, "position is"),
    "no anchor": (lambda p: {"anchor": p["anchor"] + 10_000}, "hang on no keyframe"),
    "behind": (lambda p: {"inverse": -p["inverse"]}, "behind the camera"),
    "other ids": (lambda p: {"ids 0": p["ids 0"] + 10**9}, "of no points"),
    "ids in no order": (lambda p: {"ids 0": p["ids 0"][::-1].copy()}, "not in order"),
    "no picture": (lambda p: {"grey 0": p["grey 0"][:100]}, "grey 0 is damaged"),
    "another picture": (lambda p: {"grey 0": cv2.imencode(".png", np.zeros((9, 9), np.uint8))[1]
                                   .ravel()}, "no picture of 480x360"),
    "short descriptors": (lambda p: {"descriptors 3": np.zeros((3, 32), np.uint8)}, "descriptors"),
    "no unit": (lambda p: {"metres": np.array(-1.0)}, "axes are none"),
    "no axes": (lambda p: {"setting": np.zeros((3, 4))}, "setting is no pose"),
    "objects": (lambda p: {"anchor": np.array([{}], object)}, "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_that_was_changed_is_refused(file, name):
    change, said = DAMAGES[name]
    with np.load(file) as kept:
        parts = dict(kept)
    parts |= change(parts)
    np.savez(file, **{name: each for name, each in parts.items() if each is not None})
    with pytest.raises(ConfigError, match=said):
        room_file.load(file)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_file_that_was_cut_is_refused(file, share):
    raw = file.read_bytes()
    file.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(ConfigError, match="delete it"):
        room_file.load(file)


def test_a_folder_that_cannot_be_written_is_named(first, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="cannot write map"):
        room_file.save(tmp_path / "taken" / "room.npz", first[0].kept, None)


def test_a_map_of_one_keyframe_is_not_kept(first, tmp_path):
    known = first[0].kept
    empty = replace(known, map=type(known.map)())
    room_file.save(tmp_path / "room.npz", empty, None)
    assert not (tmp_path / "room.npz").exists()
