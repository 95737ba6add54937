"""What WebXR says of a phone, as a camera has it."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Camera
from heimdall.render.preview.device import light_of, planes_of, said
from heimdall.render.preview.protocol import Lit, Placed, Sensed, Surface, Surfaces, Viewed

CAMERA = Camera.guess(640, 480)
HALF = np.sqrt(0.5)


def sensed(**what) -> Sensed:
    return Sensed(**{"at": 1.0, "sent": 1.0, **what})


def viewed(at, turn, lens=(0.8, 1.0, 0.5, 0.5)) -> Camera:
    place = Placed(list(at), list(turn)) if at is not None else None
    return said(CAMERA, sensed(viewed=Viewed(place, list(lens))), ())


def test_a_camera_that_looks_ahead_sees_what_is_there():
    pose = viewed((0, 1.5, 0), (0, 0, 0, 1)).device.pose
    assert pose.position == pytest.approx((0, 1.5, 0))
    assert pose.to_camera(np.array([0, 1.5, -2])) == pytest.approx((0, 0, 2))
    assert pose.to_camera(np.array([0.5, 1.0, -2])) == pytest.approx((0.5, 0.5, 2))  # right, below


def test_a_turned_camera_sees_what_it_was_turned_to():
    pose = viewed((1, 0, 0), (0, HALF, 0, HALF)).device.pose  # a quarter to the left
    assert pose.to_camera(np.array([-1, 0, 0])) == pytest.approx((0, 0, 2))
    assert pose.to_camera(np.array([-1, 0, -1])) == pytest.approx((1, 0, 2))


def test_a_quaternion_of_any_length_turns_the_same():
    long, short = (viewed((0, 0, 0), times * np.array([0.1, 0.2, 0.3, 0.9])) for times in (3, 0.1))
    assert long.device.pose.rotation == pytest.approx(short.device.pose.rotation)


def test_the_lens_is_in_pixels_of_the_picture_that_came():
    camera = viewed((0, 0, 0), (0, 0, 0, 1), (0.8, 1.0, 0.5, 0.6))
    assert (camera.fx, camera.fy) == (512, 480)
    assert (camera.cx, camera.cy) == (319.5, 0.6 * 480 - 0.5)
    assert not camera.guessed


def test_a_phone_that_is_lost_has_no_pose():
    assert viewed(None, None).device.pose is None


def test_without_webxr_only_the_sensors_are_heard():
    camera = said(CAMERA, sensed(down=[0, 2, 0]), ())
    assert camera.device is None
    assert camera.motion.down == pytest.approx((0, 1, 0))
    assert (camera.fx, camera.guessed) == (CAMERA.fx, True)


def test_planes_keep_number_kind_and_outline():
    outline = [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]]
    wall = Surface(5, Placed([1, 2, 3], [HALF, 0, 0, HALF]), outline, "vertical")
    (plane,) = planes_of(Surfaces([wall]))
    assert (plane.id, plane.kind) == (5, "vertical")
    assert np.asarray(plane.outline).tolist() == outline
    assert plane.pose.translation == pytest.approx((1, 2, 3))
    assert plane.pose.rotation[:, 1] == pytest.approx((0, 0, 1))  # its normal


def test_light_comes_with_the_pose():
    lit = light_of(Lit([0, 0, -3], [2, 1, 1], [0.5, 0.5, 0.5]))
    place = Viewed(Placed([0, 0, 0], [0, 0, 0, 1]), [0.8, 1.0, 0.5, 0.5])
    camera = said(CAMERA, sensed(viewed=place), (), lit)
    assert np.asarray(camera.device.light.towards).tolist() == [0, 0, -1]
    assert np.asarray(camera.device.light.main).tolist() == [2, 1, 1]
