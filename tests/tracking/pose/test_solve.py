"""Poses from points: right in spite of outliers, with an honest uncertainty, none from nothing."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.solve import apart, flipped, planar, refine

CAMERA = Camera(640, 480, 600, 602, 321, 238, (0.05, -0.1, 0.001, 0.001, 0.0))
POSE = Pose.of(np.array([2.6, 0.3, -0.2]), np.array([0.03, -0.02, 0.7]))


def points(count: int, seed: int = 2) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.uniform(-0.1, 0.1, (count, 2)), np.zeros(count)])


def off(pose: Pose) -> tuple[float, float]:
    turn, metres = apart(pose, POSE)
    return np.degrees(turn), metres


def start() -> Pose:
    return Pose.of(POSE.rotation_vector + 0.04, POSE.translation + 0.01)


def test_a_third_of_wrong_points_does_not_matter():
    there = points(60)
    pixels = CAMERA.pixels(POSE.to_camera(there))
    pixels[:20] += np.random.default_rng(3).normal(0, 40, (20, 2))
    fit = refine(CAMERA, there, pixels, start())
    degrees, metres = off(fit.pose)
    assert degrees < 0.01
    assert metres < 1e-4
    assert 38 <= fit.count <= 44


def test_the_uncertainty_is_that_of_the_noise():
    draw, there = np.random.default_rng(4), points(40)
    exact = CAMERA.pixels(POSE.to_camera(there))
    fits = [
        refine(CAMERA, there, exact + draw.normal(0, 0.5, exact.shape), POSE) for _ in range(60)
    ]
    turns = np.array([apart(each.pose, POSE)[0] for each in fits])
    said = np.mean([each.turn_sd for each in fits])
    assert 0.3 * said < np.sqrt((turns**2).mean()) < 3 * said
    assert np.mean([each.rms_px for each in fits]) == pytest.approx(0.7, abs=0.1)


def test_weights_say_who_is_right():
    there = points(40)
    pixels = CAMERA.pixels(POSE.to_camera(there))
    pixels[20:] += 1.5
    fit = refine(CAMERA, there, pixels, POSE, np.repeat([1.0, 0.001], 20))
    assert off(fit.pose)[0] < 0.1


def test_what_says_no_pose_gives_none():
    there = points(30)
    pixels = CAMERA.pixels(POSE.to_camera(there))
    assert refine(CAMERA, there[:3], pixels[:3], POSE) is None
    line = there * (1, 0, 0)
    assert refine(CAMERA, line, CAMERA.pixels(POSE.to_camera(line)), POSE) is None
    behind = Pose(POSE.rotation, POSE.translation * (1, 1, -1))
    assert refine(CAMERA, there, pixels, behind) is None


def test_a_plane_has_two_poses_and_the_first_is_right():
    there = points(12)
    poses = planar(CAMERA, there, CAMERA.pixels(POSE.to_camera(there)))
    assert len(poses) == 2
    assert off(poses[0])[0] < 0.01
    mirrored = flipped(POSE, np.zeros(3))
    assert apart(mirrored, poses[1])[0] < np.radians(8)
    assert apart(flipped(mirrored, np.zeros(3)), POSE)[0] < 1e-6
    assert mirrored.to_camera(np.zeros(3)) == pytest.approx(POSE.to_camera(np.zeros(3)))
