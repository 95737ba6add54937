"""Pixels and rays, world and camera: each way there and back."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import ConfigError

LENS = Camera(1280, 720, 910, 905, 646.5, 352.25, (0.08, -0.12, 0.001, -0.0007, 0.01))
FISHEYE = Camera(640, 360, 250, 251, 320, 180, (-0.01, 0.05, -0.04, 0.01), fisheye=True)
LENSES = [
    LENS,
    Camera(752, 480, 458.7, 457.3, 367.2, 248.4, (-0.283, 0.0739, 0.0002, 1.8e-5)),  # EuRoC's
    Camera(640, 360, 500, 500, 320, 180, (8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9)),
    Camera(640, 360, 500, 500, 320, 180, (0.1, 0.0, 0, 0, 0, 0.1, 0, 0, 0.01, 0.0, 0.02, 0.0)),
    Camera(640, 360, 500, 500, 320, 180, (0.1,) + 7 * (0.0,) + (0.01, 0, 0.02, 0, 0.01, -0.02)),
    FISHEYE,
]
vectors = st.tuples(*[st.floats(-1.5, 1.5)] * 3).map(np.array)


@given(vectors, vectors, vectors)
def test_a_pose_leads_there_and_back(turn, move, point):
    pose = Pose.of(turn, move)
    assert pose.to_world(pose.to_camera(point)) == pytest.approx(point, abs=1e-9)
    assert pose.to_camera(pose.position) == pytest.approx(np.zeros(3), abs=1e-9)
    assert pose.inverse.to_camera(pose.to_camera(point)) == pytest.approx(point, abs=1e-9)
    # OpenCV takes a turn of less than 1e-5 for none.
    assert pose.rotation_vector == pytest.approx(turn, abs=2e-5)


@given(vectors, vectors, vectors, vectors, vectors)
def test_one_pose_after_another(turn, move, turn_first, move_first, point):
    first, then = Pose.of(turn_first, move_first), Pose.of(turn, move)
    both = then.after(first).to_camera(point)
    assert both == pytest.approx(then.to_camera(first.to_camera(point)), abs=1e-9)


@given(st.floats(0, 1279), st.floats(0, 719), st.floats(0.1, 20))
def test_a_pixel_is_where_its_ray_leads(x, y, far):
    (ray,) = LENS.rays(np.array([(x, y)]))
    assert ray[2] == 1
    assert LENS.pixels(ray[None] * far)[0] == pytest.approx((x, y), abs=0.01)


@pytest.mark.parametrize("lens", LENSES)
def test_points_are_where_opencv_has_them(lens):
    points = np.array([(0.5, 0.3, 1.0), (-0.4, 0.2, 1.5), (0, 0, 2), (0.3, -0.25, 1)])
    project = cv2.fisheye.projectPoints if lens.fisheye else cv2.projectPoints
    still, bent = np.zeros(3), np.array(lens.distortion)
    wanted = project(points[:, None], still, still, lens.matrix, bent)[0][:, 0]
    assert lens.pixels(points) == pytest.approx(wanted)


@pytest.mark.parametrize("lens", LENSES)
def test_every_pixel_of_every_lens_is_where_its_ray_leads(lens):
    x, y = np.meshgrid(np.linspace(0, lens.width - 1, 17), np.linspace(0, lens.height - 1, 13))
    pixels = np.stack([x.ravel(), y.ravel()], axis=1)
    assert lens.pixels(lens.rays(pixels)) == pytest.approx(pixels, abs=0.01)


def test_the_angles_of_a_fisheye_are_those_of_kannala_and_brandt():
    angles = np.radians([1, 20, 45, 60, 80])
    points = np.column_stack([np.sin(angles), np.zeros(5), np.cos(angles)])
    k = FISHEYE.distortion
    bent = sum(each * angles ** (2 * at + 3) for at, each in enumerate(k)) + angles
    assert FISHEYE.pixels(points)[:, 0] == pytest.approx(320 + 250 * bent)
    assert FISHEYE.rays(FISHEYE.pixels(points))[:, 0] == pytest.approx(np.tan(angles), rel=1e-6)


def test_what_a_fisheye_sees_farther_than_85_degrees_counts_as_85():
    ray = replace(FISHEYE, distortion=(0.0,) * 4).rays(np.array([(320 + 250 * 1.6, 180.0)]))[0]
    assert ray == pytest.approx((np.tan(np.radians(85)), 0, 1))


@pytest.mark.parametrize("lens", LENSES)
def test_a_straightened_pixel_is_that_of_a_lens_without_distortion(lens):
    points = np.array([(0.3, 0.2, 1.0), (-0.3, 0.1, 1.0)])
    straight = replace(lens, distortion=(), fisheye=False)
    assert lens.straightened(lens.pixels(points)) == pytest.approx(
        straight.pixels(points), abs=0.01
    )


def test_coefficients_that_no_lens_has_are_refused():
    with pytest.raises(ConfigError, match="of 3 distortion coefficients: give 0 or 4 or 5"):
        replace(LENS, distortion=(0.1, 0.2, 0.3))
    with pytest.raises(ConfigError, match="a fisheye of 5 distortion coefficients: give 4"):
        replace(LENS, fisheye=True)


def test_a_lens_that_cannot_be_has_rays_that_are_finite():
    wild = replace(LENS, distortion=(1e9,) * 5)
    assert np.isfinite(wild.rays(np.array([(0.0, 0.0), (1279.0, 719.0), (646.5, 352.25)]))).all()


def test_the_middle_of_the_picture_is_straight_ahead_of_a_guessed_camera():
    camera = Camera.guess(1280, 720)
    assert camera.guessed
    assert camera.rays(np.array([(639.5, 359.5)]))[0] == pytest.approx((0, 0, 1))
    left, right = Camera.guess(640, 480).rays(np.array([(-0.5, 239.5), (639.5, 239.5)]))
    across = np.degrees(np.arctan(right[0]) - np.arctan(left[0]))
    assert across == pytest.approx(60)
    assert Camera.guess(720, 1280).fx == pytest.approx(camera.fx)  # held upright


def test_a_smaller_picture_sees_the_same():
    half = LENS.scaled(640, 360)
    points = np.array([(0.2, 0.1, 1.0), (-0.4, 0.2, 1.5)])
    assert half.pixels(points) == pytest.approx((LENS.pixels(points) + 0.5) / 2 - 0.5)


def test_no_points_are_no_error():
    assert LENS.pixels(np.empty((0, 3))).shape == (0, 2)
    assert LENS.rays(np.empty((0, 2))).shape == (0, 3)
