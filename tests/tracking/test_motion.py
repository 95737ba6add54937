"""Boxes go on as they went."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.tracking.motion import NEVER, Motion

BOX = np.array([[100.0, 100.0, 140.0, 200.0]])
UNSEEN = np.zeros((1, 4)), np.full((1, 4), NEVER)


def seen(x: float, y: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[x, y, 0, 0]]), np.full((1, 4), 1e-4)


def test_what_is_seen_to_move_moves_as_far():
    motion = Motion.of(BOX)
    for _ in range(10):
        motion.step(1, *seen(2, -1))
    assert motion.boxes()[0] == pytest.approx(BOX[0] + (20, -10, 20, -10), abs=0.2)


def test_unseen_it_goes_on_as_it_went():
    motion = Motion.of(BOX)
    for _ in range(10):
        motion.step(1, *seen(2, 0))
    for _ in range(5):
        motion.step(2, *UNSEEN)
    assert motion.boxes()[0, 0] == pytest.approx(140, abs=0.5)


def test_where_it_is_found_corrects_how_fast_it_is():
    motion = Motion.of(BOX)
    for found in range(1, 6):
        for _ in range(8):
            motion.step(1, *UNSEEN)
        motion.found(BOX + found * np.array([[8, 0, 8, 0]]))
    assert motion.boxes()[0] == pytest.approx(BOX[0] + (40, 0, 40, 0))
    assert motion.mean[0, 0, 1] == pytest.approx(1, abs=0.2)


def test_its_shape_is_what_several_results_say():
    motion, wide = Motion.of(BOX), np.array([[-10, 0, 10, 0]])
    for result in range(8):
        for _ in range(8):
            motion.step(1, *UNSEEN)
        motion.found(BOX + wide * (result % 2))  # 40 pixels wide, then 60
    left, top, right, bottom = motion.boxes()[0]
    assert 42 < right - left < 58
    assert (left + right) / 2 == pytest.approx(120)
    assert (right - left) * (bottom - top) == pytest.approx(5000, rel=0.25)


def test_what_grows_keeps_its_shape():
    motion, growing = Motion.of(BOX), np.array([[0, 0, 0.02, 0]])
    for _ in range(20):
        motion.step(1, growing, np.full((1, 4), 1e-6))
    left, top, right, bottom = motion.boxes()[0]
    assert right - left > 55
    assert (right - left) / (bottom - top) == pytest.approx(0.4)


def test_what_is_found_far_from_where_it_was_expected_begins_anew():
    motion = Motion.of(BOX)
    for _ in range(10):
        motion.step(1, *seen(5, 0))
    motion.found(BOX - 200)
    assert motion.boxes()[0] == pytest.approx(BOX[0] - 200)
    assert motion.mean[0, :, 1] == pytest.approx(0)


def test_the_camera_carries_it_along():
    motion = Motion.of(BOX)
    motion.turned(np.array([[2.0, 0, 10], [0, 2.0, 0]]))
    assert motion.boxes()[0] == pytest.approx(2 * BOX[0] + (10, 0, 10, 0))
