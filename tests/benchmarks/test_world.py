"""Rendered rooms are what they say, and trajectories are judged as they deserve."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.rooms import PLANES, Room
from benchmarks.world import aligned, judged
from heimdall.capture.lens import Pose


@pytest.fixture
def truth():
    return Room(3).poses[:300]


def moved(pose: Pose, scale: float, turn: np.ndarray, shift: np.ndarray) -> Pose:
    """The same camera in a world of another scale and other axes."""
    rotation = pose.rotation @ turn.T
    place = scale * turn @ pose.position + shift
    return Pose(rotation, -rotation @ place)


def test_another_scale_and_other_axes_are_no_error(truth):
    turn = cv2.Rodrigues(np.array([0.3, -1.1, 0.4]))[0]
    found = {n: moved(each, 0.37, turn, np.array([4.0, 1, 2])) for n, each in enumerate(truth)}
    result = judged(found, truth, 1.0)
    assert result["ate"] < 1e-9
    assert result["turn_degrees"][1] < 1e-4
    assert result["drift"] == pytest.approx(1)
    assert result["false"] == 0
    assert result["tracked"] == 1


def test_what_is_off_is_found(truth):
    chance = np.random.default_rng(1)
    found = {}
    for n, each in enumerate(truth[50:], 50):
        if n % 5:
            place = each.position + chance.normal(0, 0.01, 3)
            found[n] = Pose(each.rotation, -each.rotation @ place)
    turn = cv2.Rodrigues(np.array([0.2, 0, 0]))[0]  # about the camera itself
    found[121] = Pose(turn @ truth[121].rotation, turn @ truth[121].translation)
    result = judged(found, truth, 1.5)
    assert result["first"] == 51
    assert result["tracked"] == pytest.approx(0.8, abs=0.01)
    assert result["ate"] * result["path_m"] == pytest.approx(0.0173, rel=0.4)
    assert result["turn_degrees"][1] > 10
    assert result["false"] == pytest.approx(1 / len(found), abs=1e-6)


def test_a_scale_that_drifts_is_told(truth):
    places = np.array([each.position for each in truth])
    steps = np.diff(places, axis=0) * np.linspace(1, 1.3, len(truth) - 1)[:, None]
    own = np.vstack([places[:1], places[0] + np.cumsum(steps, axis=0)])
    found = {n: Pose(each.rotation, -each.rotation @ own[n]) for n, each in enumerate(truth)}
    assert judged(found, truth, 1.5)["drift"] > 1.1
    scale, turn, _ = aligned(own * 2, own)
    assert scale == pytest.approx(0.5)
    assert np.allclose(turn, np.eye(3))


def test_the_table_is_where_the_picture_has_it():
    """Two moments of one room agree about the table, as its plane says: a homography."""
    room = Room(2)
    (point, normal), (width, depth) = (PLANES[0].point, PLANES[0].normal), PLANES[0].size
    assert normal == (0, 1, 0)
    u, v = np.meshgrid(np.linspace(-0.4, 0.4, 40), np.linspace(-0.3, 0.3, 30))
    points = np.column_stack([u.ravel() * width, np.zeros(u.size), v.ravel() * depth]) + point

    def alike(raised_m: float) -> float:
        levels = []
        for at_s in (0.0, 1.0):
            there = room.pose(at_s).to_camera(np.add(points, (0, raised_m, 0)))
            seen = room.camera.pixels(there).astype(np.float32)
            picture = cv2.GaussianBlur(room.look(at_s), (0, 0), 1.5)
            found = cv2.remap(picture, seen[:, :1], seen[:, 1:], cv2.INTER_LINEAR)
            levels.append(found[:, 0, 0].astype(float))
        apart = np.abs(levels[0] - levels[1])
        kept = apart <= np.quantile(apart, 0.7)  # what boxes hide is not on the table
        return float(np.corrcoef(levels[0][kept], levels[1][kept])[0, 1])

    assert alike(0.0) > 0.98
    assert alike(0.1) < 0.95  # and the test would see it, if the table were elsewhere


def test_a_seed_gives_the_same_pictures():
    one, other = (next(iter(Room(4, "people")))[0] for _ in range(2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, next(iter(Room(5, "people")))[0])
