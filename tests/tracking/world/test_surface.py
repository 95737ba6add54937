"""A plane from a tap: level, so far away as the guess says, and found again in the next frames."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.capture import Camera, Pose
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.world import surface

CAMERA = Camera.guess(640, 480)


def test_the_camera_is_as_high_above_the_plane_as_was_guessed():
    pose = surface.guessed(CAMERA, (320, 300), 0.5, 30.0)
    assert pose.position[2] == pytest.approx(0.5)
    assert CAMERA.pixels(pose.to_camera(np.zeros((1, 3))))[0] == pytest.approx((320, 300))
    assert np.degrees(np.arcsin(-pose.rotation[2, 2])) == pytest.approx(30)  # looks down so far
    assert pose.rotation @ pose.rotation.T == pytest.approx(np.eye(3))


@pytest.mark.parametrize("at", [(320, -60), (320, -400)])
def test_there_is_no_plane_at_the_horizon_or_above(at):
    assert surface.guessed(CAMERA, at, 0.5, 20.0) is None


@pytest.mark.parametrize("at", [(320, 300), (200, 330), (450, 260)])
def test_the_target_lies_within_the_picture(at):
    pose = surface.guessed(CAMERA, at, 0.5, 30.0)
    half = surface.around(CAMERA, pose) / 2
    corners = np.array([[x, y, 0] for x in (-half, half) for y in (-half, half)])
    pixels = CAMERA.pixels(pose.to_camera(corners))
    assert (pixels >= 0).all()
    assert (pixels < CAMERA.size).all()


def test_too_near_to_the_edge_there_is_no_room_for_a_target():
    pose = surface.guessed(CAMERA, (2, 478), 0.5, 30.0)
    assert surface.around(CAMERA, pose) is None


def test_the_surface_is_followed_from_where_it_was_tapped(page_frames):
    """The clip's camera moves by known amounts over a table: what a guess found must agree."""
    frames = page_frames(60, 12)
    first = frames[0]
    pose = surface.guessed(first.camera, (300, 260), 0.5, 40.0)
    side = surface.around(first.camera, pose)
    tracker = surface.tracker(first.image, first.camera, pose, side, remember=False)
    found = [tracker.advance(each.image, each.camera, each.sequence) for each in frames]
    assert all(each.tracked for each in found)
    seen = next(each for each in found if each.tracked)
    turn, move = apart(seen.pose, pose)
    assert np.degrees(turn) < 6
    assert move < 0.1 * pose.translation[2]


def test_the_target_is_the_plane_seen_from_above():
    picture = np.full((480, 640, 3), 90, np.uint8)
    pose = surface.guessed(CAMERA, (320, 260), 0.5, 35.0)
    side = surface.around(CAMERA, pose)
    quarter = side / 4
    square = [[-quarter, quarter, 0], [quarter, quarter, 0], [quarter, -quarter, 0],
              [-quarter, -quarter, 0]]  # fmt: skip
    seen = CAMERA.pixels(pose.to_camera(np.array(square)))
    cv2.fillConvexPoly(picture, seen.round().astype(np.int32), (255, 255, 255))
    above = np.asarray(surface.target(picture, CAMERA, pose, side).image)
    rows, columns = np.nonzero(above[..., 0] > 170)
    assert np.ptp(rows) == pytest.approx(surface.TEXELS / 2, rel=0.05)
    assert np.ptp(columns) == pytest.approx(surface.TEXELS / 2, rel=0.05)
    assert isinstance(pose, Pose)
