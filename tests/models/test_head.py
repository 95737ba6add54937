"""Heads whose pose is known, because they were put there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.models.head import RIGID, canonical_face, head_pose

CAMERA = Camera.guess(640, 480)
FACING = np.diag([1.0, -1.0, -1.0])  # looks into the camera: y and z point the other way there


def turned(yaw: float, pitch: float, roll: float, away: float, aside: float = 0.0) -> Pose:
    """A head so many degrees from facing the camera, metres ``away``."""
    y, x, z = (np.radians(angle) for angle in (yaw, pitch, roll))
    by_yaw = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    by_pitch = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
    by_roll = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
    return Pose(by_roll @ by_pitch @ by_yaw @ FACING, np.array([aside, 0.02, away]))


def seen(pose: Pose, camera: Camera = CAMERA) -> np.ndarray:
    return camera.pixels(pose.to_camera(canonical_face()[0]))


def degrees(one: Pose, other: Pose) -> float:
    cosine = (np.trace(one.rotation.T @ other.rotation) - 1) / 2
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


POSES = [
    turned(0, 0, 0, 0.5),
    turned(35, 0, 0, 0.6, aside=0.15),
    turned(-50, 10, 5, 0.8),
    turned(10, -30, 0, 0.4),
    turned(0, 0, 80, 0.5, aside=-0.1),
    turned(20, 20, 170, 1.5),
]


@pytest.mark.parametrize("pose", POSES)
def test_a_heads_pose_is_found_again(pose: Pose) -> None:
    found = head_pose(seen(pose), CAMERA)
    assert degrees(found, pose) < 0.01
    assert found.translation == pytest.approx(pose.translation, abs=1e-5)


@pytest.mark.parametrize("pose", POSES[:4])
def test_a_pixel_of_noise_is_a_degree_or_two(pose: Pose) -> None:
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(30):
        found = head_pose(seen(pose) + rng.normal(0, 1, (468, 2)), CAMERA)
        errors.append((degrees(found, pose), abs(found.translation[2] / pose.translation[2] - 1)))
    angle, distance = np.median(errors, axis=0)
    assert angle < 2
    assert distance < 0.02


def test_a_mouth_that_speaks_does_not_turn_the_head() -> None:
    points = seen(POSES[1])
    loose = sorted(set(range(468)) - set(RIGID))
    points[loose] += 8
    assert degrees(head_pose(points, CAMERA), POSES[1]) < 0.01


def test_the_lens_is_taken_into_account() -> None:
    bent = Camera(640, 480, 500, 505, 330, 235, (-0.2, 0.05, 0.001, 0.0, 0.0))
    assert degrees(head_pose(seen(POSES[1], bent), bent), POSES[1]) < 0.05


def test_the_canonical_face_is_a_head_of_metres() -> None:
    vertices, triangles = canonical_face()
    assert vertices.shape == (468, 3)
    assert triangles.shape == (898, 3)
    wide, high, _ = np.ptp(vertices, axis=0)
    assert 0.13 < wide < 0.17
    assert 0.15 < high < 0.20
    assert vertices[4, 2] == vertices[:, 2].max()  # the tip of the nose
    assert vertices[33, 0] < 0 < vertices[263, 0]  # corners of the eyes, as in the picture
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    outwards = np.cross(b - a, c - a)
    assert ((outwards * (a + b + c)).sum(axis=1) > 0).mean() > 0.9  # lips and nostrils fold
    with pytest.raises(ValueError, match="read-only"):
        vertices[0] = 0


@pytest.mark.parametrize("pose", POSES)
def test_a_heads_pose_is_found_through_a_fisheye(pose: Pose) -> None:
    fisheye = replace(CAMERA, distortion=(-0.01, 0.05, -0.04, 0.01), fisheye=True)
    found = head_pose(seen(pose, fisheye), fisheye)
    assert degrees(found, pose) < 0.01
    assert found.translation == pytest.approx(pose.translation, abs=1e-4)
