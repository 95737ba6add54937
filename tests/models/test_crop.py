from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.models import crop

angles = st.floats(-3.1, 3.1)
places = st.tuples(st.floats(0, 1920), st.floats(0, 1080))


def up(angle: float) -> np.ndarray:
    """Straight up, turned clockwise."""
    return np.array([np.sin(angle), -np.cos(angle)])


def apply(to_crop: np.ndarray, point: np.ndarray) -> np.ndarray:
    return to_crop[:, :2] @ point + to_crop[:, 2]


@given(places, angles, st.floats(2, 1500), st.floats(0.01, 500))
def test_the_square_fills_the_crop_and_what_is_up_in_it_is_up(place, angle, side, length) -> None:
    to_crop = crop.upright(np.array(place), length * up(angle), side, 256)
    assert apply(to_crop, np.array(place)) == pytest.approx((128, 128), abs=1e-6)
    top = np.array(place) + side / 2 * up(angle)
    assert apply(to_crop, top) == pytest.approx((128, 0), abs=1e-6)
    assert np.linalg.det(to_crop[:, :2]) > 0  # turned and scaled, never mirrored


def test_without_a_direction_it_is_straight() -> None:
    still = crop.upright(np.array([50.0, 60.0]), np.zeros(2), 20, 10)
    assert still == pytest.approx(np.array([[0.5, 0, -20], [0, 0.5, -25]]))


def test_a_crop_at_its_own_size_is_the_picture() -> None:
    image = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    whole = crop.upright(np.array([32.0, 32.0]), up(0), 64, 64)
    assert (crop.cut(image, whole, 64) == image).all()


def test_a_smaller_crop_is_what_a_resize_gives() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (128, 128, 3), np.uint8)
    image = cv2.GaussianBlur(noise, (0, 0), 3)
    whole = crop.upright(np.array([64.0, 64.0]), up(0), 128, 96)
    resized = cv2.resize(image, (96, 96), interpolation=cv2.INTER_LINEAR)
    assert np.abs(crop.cut(image, whole, 96).astype(int) - resized).max() <= 2


def test_beyond_the_frame_its_edge_goes_on() -> None:
    image = np.zeros((20, 20, 3), np.uint8)
    image[:, -1] = 200
    to_crop = crop.upright(np.array([20.0, 10.0]), up(0), 20, 20)  # its right half is outside
    assert (crop.cut(image, to_crop, 20)[:, 10:] == 200).all()


@given(places, angles, st.floats(10, 600))
def test_points_come_back_to_the_frame_and_depths_grow_with_them(place, angle, side) -> None:
    to_crop = crop.upright(np.array(place), up(angle), side, 192)
    there = np.array([[*apply(to_crop, np.array([300.0, 200.0])), 12.0]], np.float32)
    (found,) = crop.to_frame(there, to_crop)
    assert found[:2] == pytest.approx((300, 200), abs=0.05)
    assert found[2] == pytest.approx(12 * side / 192, rel=1e-4)
    assert found.dtype == np.float32


@given(angles, st.floats(10, 600))
def test_metres_turn_with_the_crop_and_keep_their_length(angle, side) -> None:
    to_crop = crop.upright(np.array([100.0, 100.0]), up(angle), side, 256)
    (found,) = crop.turned_to_frame(np.array([[0.0, -0.5, 0.2]]), to_crop)  # half a metre up in it
    assert found == pytest.approx((*(0.5 * up(angle)), 0.2), abs=1e-5)


def test_a_score_far_below_zero_is_no_overflow() -> None:
    with np.errstate(all="raise"):
        assert crop.sigmoid(-1e4) == 0
        assert crop.sigmoid(0) == 0.5
        assert crop.sigmoid(np.full(1, 1e4, "f")[0]) == 1
