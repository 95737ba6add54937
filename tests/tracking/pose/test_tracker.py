"""The pose of a camera over a desk: found, followed, kept while it can be, lost honestly."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from heimdall.tracking.pose import ImageTarget, Marker, PoseTracker, Views
from heimdall.tracking.pose.solve import apart
from tests.tracking.pose.photographed import (
    DICTIONARY,
    MARKER,
    PICTURE,
    STRAIGHT,
    desk,
    looking,
    noisy,
    swaying,
)

HALF_A_SECOND = 15  # frames


def errors(pose, truth) -> tuple[float, float]:
    """Degrees, and the share of the distance."""
    turn, metres = apart(pose, truth)
    return np.degrees(turn), metres / float(np.linalg.norm(truth.translation))


def play(tracker, poses, scene=None, changed=lambda number, frame: frame):
    """A Tracking for each pose; none that is told is wrong."""
    scene = scene or desk()
    shown = []
    for number, pose in enumerate(poses):
        frame = changed(number, noisy(scene.taken(pose), number))
        shown.append(tracker.advance(frame, scene.camera, number))
        if shown[-1].tracked:
            degrees, share = errors(shown[-1].pose, pose)
            assert degrees < 5, number
            assert share < 0.05, number
    return shown


def covered(frame, pose, share, camera=STRAIGHT):
    """With ``share`` of the marker hidden, from its left, and no more of the desk than that."""
    half = MARKER.width_m / 2 * 8 / 6
    right = -half + 2 * half * share
    there = np.array([[-half, half, 0], [right, half, 0], [right, -half, 0], [-half, -half, 0]])
    outline = camera.pixels(pose.to_camera(there)).round().astype(np.int32)
    return cv2.fillConvexPoly(frame.copy(), outline, 150)


@pytest.mark.parametrize(("kind", "target"), [("marker", MARKER), ("picture", PICTURE)])
def test_a_target_is_found_and_followed(kind, target):
    poses = [swaying(number) for number in range(36)]
    shown = play(PoseTracker([target]), poses, desk(kind))
    tracked = [each.tracked for each in shown]
    assert True in tracked[:HALF_A_SECOND]
    first = tracked.index(True)
    assert all(tracked[first:])
    off = np.array([errors(shown[at].pose, poses[at]) for at in range(first, 36)])
    assert np.median(off[:, 0]) < 0.5
    assert np.median(off[:, 1]) < 0.01
    assert shown[-1].reprojection_px < 1
    assert shown[-1].points >= 8
    assert [each.sequence for each in shown] == list(range(36))


@pytest.mark.parametrize(
    "bent",
    [
        {"fx": 300, "fy": 300, "distortion": (-0.01, 0.05, -0.04, 0.01), "fisheye": True},
        {"distortion": (8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9)},
    ],
    ids=["fisheye", "rational"],
)
def test_a_marker_is_followed_through_a_bent_lens_and_found_again_by_its_surroundings(bent):
    poses = [swaying(number) for number in range(30)]
    camera = replace(STRAIGHT, **bent)

    def hidden(number, frame):
        return covered(frame, poses[number], 1.0, camera) if number == 29 else frame

    shown = play(PoseTracker([MARKER], Views()), poses, desk(camera=camera), hidden)
    first = [each.tracked for each in shown].index(True)
    assert all(each.tracked for each in shown[first:])
    off = np.array([errors(shown[at].pose, poses[at]) for at in range(first, 30)])
    assert np.median(off[:, 0]) < 0.5
    assert np.median(off[:, 1]) < 0.01


def test_a_marker_may_be_hidden_by_three_fifths():
    poses = [swaying(number) for number in range(30)]

    def hidden(number, frame):
        return covered(frame, poses[number], 0.6 if 10 <= number < 22 else 0.0)

    shown = play(PoseTracker([MARKER]), poses, changed=hidden)
    assert all(each.tracked for each in shown[5:])


def test_it_is_lost_and_found_again_within_half_a_second():
    poses = [swaying(number) for number in range(40)]

    def dark(number, frame):
        return frame * 0 if 10 <= number < 20 else frame

    shown = play(PoseTracker([MARKER]), poses, changed=dark)
    assert not any(each.tracked for each in shown[10:20])
    assert all(each.pose is shown[9].pose for each in shown[10:20])  # the last one is kept
    assert shown[15].raw is None
    assert any(each.tracked for each in shown[20 : 20 + HALF_A_SECOND])
    assert shown[-1].tracked


def test_half_a_marker_is_found_again_where_it_was():
    """Its corners are hidden, so nothing could find it that does not know where to look."""
    poses = [swaying(number) for number in range(34)]

    def hidden(number, frame):
        share = 0.0 if number < 10 else 1.0 if number < 16 else 0.55
        return covered(frame, poses[number], share)

    shown = play(PoseTracker([MARKER]), poses, changed=hidden)
    assert not any(each.tracked for each in shown[11:16])
    assert any(each.tracked for each in shown[16 : 16 + HALF_A_SECOND])


@pytest.fixture(scope="module")
def toured():
    """A tracker that has seen the desk from several sides, and where it looked."""
    poses = [looking((0.0, 0.0), 0.6, 25, 180 + 1.5 * number) for number in range(70)]
    tracker = PoseTracker([MARKER], Views())
    shown = play(tracker, poses)
    assert all(each.tracked for each in shown[5:])
    return tracker, poses


def away(poses, steps=40, far=0.56):
    """From the last of ``poses`` over to where the marker is out of the picture."""
    return [
        looking((far * number / steps, 0.0), 0.6, 25, 180 + 1.5 * len(poses))
        for number in range(1, steps + 1)
    ]


def test_what_is_around_carries_the_pose_when_the_marker_leaves(toured):
    tracker, poses = toured
    assert len(tracker.views) >= 1
    path = away(poses)
    shown = play(tracker, path)
    seen = STRAIGHT.pixels(path[-1].to_camera(tracker.prepared[0].corners))
    assert ((seen < 0) | (seen > STRAIGHT.size)).any(axis=1).all()  # it has left
    assert sum(each.tracked for each in shown) >= 0.9 * len(shown)
    assert shown[-1].tracked


def test_what_was_saved_is_found_again_without_a_marker(toured, tmp_path):
    tracker, poses = toured
    tracker.views.save(tmp_path / "desk.npz")
    views = Views()
    views.load(tmp_path / "desk.npz")
    assert len(views) == len(tracker.views)
    shown = play(PoseTracker([MARKER], views), poses[20:36], desk("nothing"))
    assert any(each.tracked for each in shown)


@pytest.mark.parametrize("target", [MARKER, PICTURE])
@pytest.mark.parametrize("scene", ["nothing", "other", "plain"])
def test_no_pose_without_its_target(target, scene):
    kind = "nothing" if scene != "other" else "picture" if target is MARKER else "marker"
    views = desk(kind, plain=scene == "plain")
    tracker = PoseTracker([target], Views())
    for number in range(16):
        tracking = tracker.advance(views.taken(swaying(2 * number)), STRAIGHT, number)
        assert tracking.state == "lost"
        assert tracking.pose is None


def test_a_still_camera_does_not_tremble():
    pose = looking((0.0, 0.0), 0.6, 30, 200)
    shown = play(PoseTracker([MARKER]), [pose] * 45)
    point = pose.to_world(np.array([[0.0, 0.0, 1.0]]))
    places = np.concatenate([each.pose.to_camera(point) for each in shown[15:]])
    assert np.sqrt(places.var(axis=0).sum()) < 0.001
    raw = np.concatenate([each.raw.to_camera(point) for each in shown[15:]])
    assert places.var(axis=0).sum() < raw.var(axis=0).sum()


def test_a_second_target_is_placed_by_the_first():
    """Its place follows from both being seen; then it is enough alone."""
    other = Marker(DICTIONARY, 30, 0.08)
    scene = desk()
    tracker = PoseTracker([MARKER, other])
    printed = cv2.aruco.generateImageMarker(
        cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50), 30, 96
    )
    page = np.pad(printed, 16, constant_values=255)
    side = 0.08 * 128 / 96 / 2
    x, y = 0.16, 0.02
    corners = np.array([[x - side, y + side, 0], [x + side, y + side, 0],
                        [x + side, y - side, 0], [x - side, y - side, 0]])  # fmt: skip

    def with_other(number, frame):
        seen = STRAIGHT.pixels(poses[number].to_camera(corners)).astype(np.float32)
        flat = np.array([[0, 0], [127, 0], [127, 127], [0, 127]], np.float32)
        onto = cv2.getPerspectiveTransform(flat, seen)
        frame = frame.copy()
        cv2.warpPerspective(
            page, onto, STRAIGHT.size, frame, cv2.INTER_LINEAR, cv2.BORDER_TRANSPARENT
        )
        return frame

    poses = [swaying(number % 40) for number in range(110)]
    play(tracker, poses, scene, with_other)
    place = tracker.placed[other.name]
    assert place.translation == pytest.approx((x, y, 0), abs=0.006)
    assert apart(place, tracker.placed[MARKER.name])[0] < np.radians(3)


def test_colour_and_grey_are_the_same():
    frame = desk().taken(swaying(0))
    one, other = PoseTracker([MARKER]), PoseTracker([MARKER])
    for number in range(6):
        grey = one.advance(frame, STRAIGHT, number)
        colour = other.advance(cv2.cvtColor(frame, cv2.COLOR_GRAY2BGR), STRAIGHT, number)
    assert grey.tracked
    assert colour.pose.translation == pytest.approx(grey.pose.translation, abs=1e-4)


def test_a_target_may_be_a_picture_in_memory():
    assert PoseTracker([ImageTarget(PICTURE.image, 0.2)]).prepared[0].corners.shape == (4, 3)
