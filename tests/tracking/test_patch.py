"""A piece of the picture moves as one, whatever moves before or behind it."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.tracking.flow import Tracks
from heimdall.tracking.patch import Anchor, Patch, chained, moved, similarity

TOLERANCE = 2.0


def grid(count: int = 8) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(100, 200, count), np.linspace(50, 150, count))
    return np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)


def tracks(sequence: int, points: np.ndarray, first: int = 0) -> Tracks:
    return Tracks(sequence, np.arange(first, first + len(points)), points)


def turned(degrees: float, scale: float, shift: tuple[float, float]) -> np.ndarray:
    a = np.radians(degrees)
    turn = scale * np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    return np.column_stack([turn, shift])


def everywhere(points: np.ndarray) -> np.ndarray:
    return np.ones(len(points), bool)


def test_shift_roll_and_scale_are_found():
    there = turned(10, 1.2, (30, -5))
    patch = Patch(tracks(0, grid()), everywhere, TOLERANCE)
    patch.follow(tracks(1, moved(there, grid())))
    assert patch.transform == pytest.approx(there, abs=1e-3)


def test_points_that_move_otherwise_have_no_say():
    there = turned(0, 1, (20, 0))
    now = moved(there, grid())
    now[::3] = grid()[::3]  # a third of the points belongs to the wall behind
    patch = Patch(tracks(0, grid()), everywhere, TOLERANCE)
    patch.follow(tracks(1, now))
    assert patch.transform == pytest.approx(there, abs=1e-3)


def test_with_too_few_points_it_stays_where_it_was():
    there = turned(0, 1, (20, 0))
    patch = Patch(tracks(0, grid()), everywhere, TOLERANCE)
    patch.follow(tracks(1, moved(there, grid())))
    patch.follow(tracks(2, grid()[:3]))
    assert patch.transform == pytest.approx(there, abs=1e-3)
    assert similarity(grid()[:3], grid()[:3], TOLERANCE) is None


def test_points_in_one_place_say_nothing():
    assert similarity(np.ones((6, 2), np.float32), np.ones((6, 2), np.float32), TOLERANCE) is None


def test_points_that_appear_later_carry_on_when_all_others_are_gone():
    patch = Patch(tracks(0, grid()), everywhere, TOLERANCE)
    step = turned(0, 1, (10, 4))
    late = grid() + np.float32(3)
    old, new = moved(step, grid()), moved(step, late)
    patch.follow(Tracks(1, np.arange(2 * len(old)), np.vstack([old, new])))
    then = moved(step, new)
    patch.follow(tracks(2, then, first=len(old)))
    assert patch.transform == pytest.approx(chained(step, step), abs=1e-3)


def test_an_anchor_tells_place_scale_and_roll():
    anchor = Anchor((100, 50))
    assert (anchor.at, anchor.scale, anchor.roll) == ((100, 50), 1, 0)
    anchor.transform = turned(90, 2, (0, 0))
    assert anchor.at == pytest.approx((-100, 200))
    assert (anchor.scale, anchor.roll) == pytest.approx((2, 90))
    assert anchor.carry(np.array([[1.0, 0.0]]))[0] == pytest.approx((0, 2))
