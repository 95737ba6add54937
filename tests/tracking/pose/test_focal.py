"""A camera that was guessed is found out by what it sees of a target from several sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heimdall.tracking.pose import PoseTracker, Views
from heimdall.tracking.pose.focal import Focal
from tests.tracking.pose.photographed import MARKER, STRAIGHT, desk, looking, noisy

LONG = [looking((0.0, 0.0), 0.5, 32 + 12 * np.sin(n / 9), 200 + 3 * n) for n in range(90)]


def guessed(times: float):
    """STRAIGHT as somebody might guess it."""
    return replace(STRAIGHT, fx=STRAIGHT.fx * times, fy=STRAIGHT.fy * times, guessed=True)


def told(camera, poses, seed=0):
    """How many times longer the lens is said to be than that of ``camera``, view by view."""
    draw, focal = np.random.default_rng(seed), Focal()
    across = np.linspace(-0.06, 0.06, 5)
    x, y = np.meshgrid(across, across)
    points = np.column_stack([x.ravel(), y.ravel(), np.zeros(25)])
    for pose in poses:
        pixels = STRAIGHT.pixels(pose.to_camera(points)) + draw.normal(0, 0.1, (25, 2))
        focal.look(camera, points, pixels, pose)
    return focal.times


@pytest.mark.parametrize("times", [0.7, 0.85, 1.2, 1.5])
def test_a_wrong_guess_is_corrected(times):
    assert told(guessed(times), LONG) * times == pytest.approx(1, abs=0.04)


def test_a_right_guess_is_left_alone():
    assert told(guessed(1.0), LONG) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    "poses", [[LONG[0]] * 90, [looking((0.0, 0.0), 0.5, 0.5, 3 * n) for n in range(90)]]
)
def test_views_from_one_side_or_straight_on_say_nothing(poses):
    assert told(guessed(0.75), poses) == 1


def played(camera, count=90, **options):
    tracker = PoseTracker([MARKER], Views(), **options)
    scene = desk()
    return [tracker.advance(noisy(scene.taken(LONG[n]), n), camera, n) for n in range(count)]


def test_poses_go_with_the_lens_that_was_found():
    shown = played(guessed(0.75))
    focal = shown[-1].focal
    assert shown[0].focal == 1
    assert focal * 0.75 == pytest.approx(1, abs=0.05)
    assert sum(each.tracked for each in shown[5:]) > 80
    here, truth = shown[-1].pose.translation[2], LONG[-1].translation[2]
    assert here == pytest.approx(truth, rel=0.05)  # of 33% too near, as guessed


@pytest.mark.parametrize("case", ["calibrated", "untrue"])
def test_a_camera_that_is_known_stays_and_so_does_one_that_a_target_was_made_by(case):
    camera = guessed(0.75) if case == "untrue" else replace(guessed(0.75), guessed=False)
    shown = played(camera, 70, true=case != "untrue")
    assert {each.focal for each in shown} == {1.0}
    assert shown[-1].tracked


def test_a_map_knows_the_lens_that_it_was_seen_by():
    views = Views()
    views.focal = 1 / 0.75
    tracker, scene = PoseTracker([MARKER], views), desk()
    shown = [tracker.advance(scene.taken(LONG[n]), guessed(0.75), n) for n in range(6)]
    assert shown[0].focal == 1 / 0.75
    assert shown[-1].pose.translation[2] == pytest.approx(LONG[5].translation[2], rel=0.01)
