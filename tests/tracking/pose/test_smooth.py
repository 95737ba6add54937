"""Poses do not tremble, and do not lag."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture.pose import Pose
from heimdall.tracking.pose.smooth import Smoother
from heimdall.tracking.pose.solve import apart

STILL = Pose.of(np.array([np.pi, 0.1, 0.0]), np.array([0.02, -0.01, 0.8]))


def trembling(pose: Pose, draw: np.random.Generator) -> Pose:
    turn = Pose.of(draw.normal(0, 0.0004, 3), np.zeros(3)).rotation
    return Pose(turn @ pose.rotation, pose.translation + draw.normal(0, 0.0002, 3))


def test_a_still_camera_trembles_less():
    draw, smooth = np.random.default_rng(1), Smoother()
    raw = [trembling(STILL, draw) for _ in range(120)]
    shown = [smooth(each, number / 30) for number, each in enumerate(raw)]
    before, after = (
        np.std([each.translation for each in poses[30:]], axis=0).max() for poses in (raw, shown)
    )
    assert after < 0.6 * before
    turns = [apart(each, STILL)[0] for each in shown[30:]]
    assert np.mean(turns) < 0.7 * np.mean([apart(each, STILL)[0] for each in raw[30:]])


@pytest.mark.parametrize("metres_a_second", [0.2, 0.6])
def test_a_moving_camera_does_not_lag(metres_a_second):
    smooth = Smoother()
    for number in range(60):
        moved = np.array([metres_a_second * number / 30, 0, 0])
        true = Pose(STILL.rotation, STILL.translation + moved)
        shown = smooth(true, number / 30)
    behind_s = (true.translation - shown.translation)[0] / metres_a_second
    assert 0 <= behind_s < 0.012


def test_it_begins_anew_where_a_pose_was_lost():
    smooth = Smoother()
    smooth(STILL, 0.0)
    smooth.forget()
    elsewhere = Pose(STILL.rotation, STILL.translation + 1)
    assert smooth(elsewhere, 0.5) is elsewhere


def test_times_that_do_not_advance_do_no_harm():
    smooth = Smoother()
    for at_s in (1.0, 1.0, 0.5, 100.0):
        shown = smooth(STILL, at_s)
    assert shown.translation == pytest.approx(STILL.translation)
    assert shown.rotation == pytest.approx(STILL.rotation)
