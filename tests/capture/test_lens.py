"""Pixels and rays, world and camera: each way there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose

LENS = Camera(1280, 720, 910, 905, 646.5, 352.25, (0.08, -0.12, 0.001, -0.0007, 0.01))
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
    assert LENS.pixels(ray[None] * far)[0] == pytest.approx((x, y), abs=0.05)


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
