"""The tie between a room's map and a marker: scale, axes and origin from pairs of poses."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Pose
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.slam.model import nearer
from heimdall.tracking.world.layout import Layout
from heimdall.tracking.world.tie import Tie

from .standin import FIRST, OTHER, UNIT, StandIn, in_map, seen_from

SIDE = 0.2
CORNERS = SIDE / 2 * np.array([[-1, 1, 0], [1, 1, 0], [1, -1, 0], [-1, -1, 0.0]])
RNG = np.random.default_rng(5)


def noisy(pose: Pose, share: float = 0.005, degrees: float = 0.7) -> Pose:
    """As a small marker is seen: its middle well, its turn less so."""
    turn = Pose.of(np.radians(degrees) * RNG.normal(size=3), np.zeros(3)).rotation
    far = np.linalg.norm(pose.translation)
    return Pose(turn @ pose.rotation, pose.translation + share * far * RNG.normal(size=3))


def walk(count: int = 40) -> list[Pose]:
    """Around the marker, which is in the origin."""
    angles = np.linspace(-0.5, 0.5, count)
    return [
        seen_from((0.8 * np.sin(a), -0.8 * np.cos(a), 0.55 + 0.1 * np.sin(5 * a))) for a in angles
    ]


def bare() -> StandIn:
    """A map that has no points on the marker."""
    room = StandIn()
    room.map.points.spread[:] = np.inf
    return room


def taken(tie: Tie, room: StandIn, poses: list[Pose], seen=noisy):
    layout = Layout.of(room.map)
    for pose in poses:
        tie.take(layout, in_map(pose), seen(pose))
    return tie.setting


def error(setting, pose: Pose) -> tuple[float, float]:
    """Of a camera that the map has, degrees and share of its distance."""
    turn, move = apart(setting.camera(in_map(pose)), pose)
    return float(np.degrees(turn)), float(move / np.linalg.norm(pose.translation))


def test_points_on_the_marker_say_the_scale_before_the_camera_moves():
    tie = Tie(CORNERS)
    setting = taken(tie, StandIn(), [FIRST] * 8)
    assert setting.metres == pytest.approx(UNIT, rel=0.03)
    assert setting.source == "marker"


def test_without_them_it_is_not_known_until_the_camera_has_moved():
    tie, room = Tie(CORNERS), bare()
    assert taken(tie, room, [FIRST] * 8) is None
    setting = taken(tie, room, walk())
    assert setting.metres == pytest.approx(UNIT, rel=0.01)
    degrees, share = error(setting, seen_from((0.4, 0.5, 0.7)))  # from another side
    assert degrees < 0.5
    assert share < 0.01


def test_it_becomes_better_with_more_pairs():
    room, errors = bare(), []
    for count in (10, 60):
        offs = []
        for _ in range(12):
            tie = Tie(CORNERS)
            setting = taken(tie, room, walk(count), lambda pose: noisy(pose, 0.01, 1.5))
            offs.append(abs(np.log(setting.metres / UNIT)))
        errors.append(np.mean(offs))
    assert errors[1] < 0.75 * errors[0]


def test_mirrored_and_wrong_poses_have_no_say():
    tie, poses = Tie(CORNERS), walk(50)
    wrong = set(range(0, 50, 5))

    def seen(pose):
        if poses.index(pose) not in wrong:
            return noisy(pose)
        lean = Pose.of(np.array([1.2, 0, 0]), np.zeros(3)).rotation
        return Pose(lean @ pose.rotation, 1.3 * pose.translation)

    setting = taken(tie, bare(), poses, seen)
    assert setting.metres == pytest.approx(UNIT, rel=0.015)
    degrees, share = error(setting, FIRST)
    assert degrees < 0.7
    assert share < 0.015


def test_it_follows_the_map_when_that_is_adjusted():
    tie, room = Tie(CORNERS), bare()
    before = taken(tie, room, walk())
    room.adjust(OTHER)
    after = tie.take(Layout.of(room.map), None, None)
    assert after is not before
    was = before.camera(in_map(FIRST))
    now = after.camera(in_map(FIRST).after(OTHER))
    assert np.degrees(apart(was, now)[0]) < 0.05
    assert apart(was, now)[1] < 0.001


def test_it_stays_the_same_while_nothing_shows():
    tie, room = Tie(CORNERS), bare()
    exact = taken(tie, room, walk(), lambda pose: pose)
    assert taken(tie, room, walk(55), lambda pose: pose) is exact
    room.map.number += 1
    assert tie.take(Layout.of(room.map), None, None) is exact


def test_pairs_go_on_when_their_keyframe_is_dropped():
    tie, room = Tie(CORNERS), bare()
    before = taken(tie, room, walk(), lambda pose: pose)
    del room.map.keyframes[0]
    room.adjust(OTHER)
    after = tie.take(Layout.of(room.map), None, None)
    was, now = before.camera(in_map(FIRST)), after.camera(in_map(FIRST).after(OTHER))
    assert after is not before
    assert apart(was, now)[1] < 1e-6


def test_it_goes_with_a_loop_that_changes_lengths():
    tie, room = Tie(CORNERS), bare()
    before = taken(tie, room, walk(), lambda pose: pose)
    for number, each in list(room.map.keyframes.items()):
        room.map.move(number, nearer(each.pose, 2.0), 2.0)
    room.map.number += 1
    after = tie.take(Layout.of(room.map), None, None)
    assert after.metres == pytest.approx(2 * before.metres)
    was, now = before.camera(in_map(FIRST)), after.camera(nearer(in_map(FIRST), 2.0))
    assert apart(was, now)[1] < 1e-6


def test_pairs_by_another_lens_say_nothing():
    tie, room = Tie(CORNERS), bare()
    before = taken(tie, room, walk(), lambda pose: pose)
    room.map.zoom(1.3)
    room.map.number += 1
    layout = Layout.of(room.map)
    assert tie.take(layout, None, None) is before  # until there are others
    for pose in walk():
        longer = Pose(pose.rotation, 1.3 * pose.translation)  # as it is known now
        tie.take(layout, in_map(pose), longer)
    assert tie.setting.metres == pytest.approx(1.3 * before.metres, rel=0.01)


def test_another_map_is_tied_anew():
    tie, room = Tie(CORNERS), bare()
    assert taken(tie, room, walk()) is not None
    room.map = room.new_map()
    assert tie.take(Layout.of(room.map), in_map(FIRST), None) is None
    assert taken(tie, room, walk(), lambda pose: pose).metres == pytest.approx(UNIT, rel=1e-6)
