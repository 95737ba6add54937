"""Trajectories and planes are judged as they deserve."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from benchmarks.trajectory import (
    Flat,
    Similarity,
    aligned,
    back_after,
    degrees_between,
    judged,
    planes_judged,
    share_tracked,
)
from heimdall.capture.pose import Pose

TURN = cv2.Rodrigues(np.array([0.3, -1.1, 0.4]))[0]
ELSEWHERE = Similarity(0.37, TURN, np.array([4.0, 1.0, 2.0]))


def turned(*degrees: float) -> np.ndarray:
    return cv2.Rodrigues(np.radians(degrees))[0]


def at(rotation: np.ndarray, place: np.ndarray) -> Pose:
    return Pose(rotation, -rotation @ place)


@pytest.fixture
def truth():
    """A walk of 300 frames around something 1.5 away."""
    poses = {}
    for n in range(300):
        t = n / 30
        place = np.array([math.sin(0.6 * t), 0.3 * math.sin(1.1 * t), 0.4 * math.cos(0.9 * t)])
        poses[n] = at(turned(10 * math.sin(t), 20 * math.cos(0.7 * t), 5 * t), place)
    return poses


def changed(truth, change):
    return {n: change(n, each) for n, each in truth.items()}


def test_another_scale_and_other_axes_are_no_error(truth):
    found = changed(truth, lambda _, each: ELSEWHERE.pose(each))
    result = judged(found, truth, own_depth=1.5)
    assert result.ate < 1e-12
    assert result.worst_turn < 1e-5
    assert result.drift == pytest.approx(1)
    assert result.false == 0
    assert result.tracked == 1
    assert result.first == 0
    assert result.alignment.scale == pytest.approx(1 / 0.37)
    assert np.allclose(result.alignment.places(ELSEWHERE.places(np.eye(3))), np.eye(3))


def test_a_mirrored_world_is_an_error():
    """No rotation undoes a mirror, so the alignment must not either."""
    places = np.random.default_rng(1).normal(size=(50, 3))
    alignment = aligned(places * (1, 1, -1), places)
    assert np.linalg.det(alignment.rotation) == pytest.approx(1)
    assert np.abs(alignment.places(places * (1, 1, -1)) - places).max() > 0.5


def test_the_alignment_is_the_best_similarity():
    """Any other one nearby leaves larger squares."""
    chance = np.random.default_rng(2)
    own = chance.normal(size=(40, 3))
    true = ELSEWHERE.places(own) + chance.normal(0, 0.2, (40, 3))
    best = aligned(own, true)

    def left(each: Similarity) -> float:
        return float(((each.places(own) - true) ** 2).sum())

    others = [
        Similarity(best.scale * scale, turned(*turn) @ best.rotation, best.translation + move)
        for scale in (0.99, 1, 1.01)
        for turn in ((0, 0, 0), (1, 0, 0), (0, -1, 0), (0, 0, 1))
        for move in (np.zeros(3), np.array([0.01, 0, 0]), np.array([0, -0.01, 0.01]))
    ]
    assert min(map(left, others[1:])) >= left(best) * (1 - 1e-12)
    assert sum(left(each) > left(best) for each in others) == len(others) - 1


def test_noise_of_places_is_the_trajectory_error(truth):
    chance = np.random.default_rng(1)
    found = changed(truth, lambda _, p: at(p.rotation, p.position + chance.normal(0, 0.01, 3)))
    result = judged(found, truth, own_depth=1.5)
    assert result.ate * result.path == pytest.approx(0.01 * math.sqrt(3), rel=0.1)
    assert result.ate < result.worst < 5 * result.ate
    assert result.path == pytest.approx(
        sum(np.linalg.norm(truth[n].position - truth[n - 1].position) for n in range(1, 300))
    )


def test_a_camera_turned_once_is_one_false_pose(truth):
    found = changed(truth, lambda _, each: ELSEWHERE.pose(each))
    wrong = turned(6, 0, 0)  # about the camera itself
    found[121] = Pose(wrong @ found[121].rotation, wrong @ found[121].translation)
    result = judged(found, truth, own_depth=1.5)
    assert result.worst_turn == pytest.approx(6, abs=1e-3)
    assert result.turn < 1e-4
    assert result.false == pytest.approx(1 / 300)
    assert result.errors[121][1] == pytest.approx(6, abs=1e-3)


def test_how_far_off_is_false_depends_on_the_scene(truth):
    found = dict(truth)
    found[50] = at(truth[50].rotation, np.add(truth[50].position, (0.1, 0, 0)))
    near = dict.fromkeys(truth, 1.0)
    assert judged(found, truth, near).false == pytest.approx(1 / 300)
    assert judged(found, truth, near | {50: 3.0}).false == 0
    own = changed(found, lambda _, each: ELSEWHERE.pose(each))
    assert judged(own, truth, own_depth=1.0 * 0.37).false == pytest.approx(1 / 300)
    assert judged(own, truth, own_depth=3.0 * 0.37).false == 0


def test_a_scale_that_drifts_is_told_either_way(truth):
    places = np.array([truth[n].position for n in truth])
    for end in (1.3, 1 / 1.3):
        steps = np.diff(places, axis=0) * np.linspace(1, end, len(truth) - 1)[:, None]
        own = places[0] + np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
        found = changed(truth, lambda n, each, own=own: at(each.rotation, own[n]))
        assert 1.1 < judged(found, truth).drift < 1.3


def test_gaps_do_not_count_and_coming_back_does(truth):
    gap = range(100, 160)
    found = {n: each for n, each in truth.items() if n >= 20 and not 100 <= n < 167}
    result = judged(found, truth, gaps=[gap])
    assert result.first == 20
    assert result.back == (7,)
    assert result.tracked == pytest.approx(1 - 7 / 220)
    assert judged({n: found[n] for n in range(20, 100)}, truth, gaps=[gap]).back == (None,)


def test_frames_without_truth_count_as_tracked(truth):
    some = {n: each for n, each in truth.items() if n % 8 == 0}
    result = judged(truth, some, frames=300)
    assert result.tracked == 1
    assert len(result.errors) == len(some)
    assert judged({n: truth[n] for n in range(150)}, some, frames=300).tracked == 0.5


def test_nothing_is_said_of_what_does_not_move_or_is_too_little(truth):
    still = changed(truth, lambda _, each: truth[0])
    assert judged(still, truth) is None
    assert judged(truth, still) is None
    assert judged({n: truth[n] for n in range(5)}, truth) is None
    assert judged({}, truth) is None
    with pytest.raises(ValueError, match="no scale"):
        aligned(np.ones((20, 3)), np.random.default_rng(0).normal(size=(20, 3)))


def test_shares_and_returns_of_few_frames():
    assert share_tracked([], 10) == 0
    assert share_tracked([4, 5, 9], 10) == 0.5
    assert back_after([1, 2, 8], 5) == 3
    assert back_after([1, 5], 5) == 0
    assert back_after([1], 5) is None


@pytest.mark.parametrize("degrees", [1e-6, 0.3, 90, 179.9])
def test_angles_are_exact_even_where_cosines_are_not(degrees):
    axis = np.array([1, 2, -2]) / 3
    other = turned(*(degrees * axis)) @ TURN
    assert degrees_between(other, TURN) == pytest.approx(degrees, rel=1e-6)


def test_a_plane_is_judged_in_the_true_world():
    table = Flat("table", np.array([0, 0.75, 0]), np.array([0, 1.0, 0]), 0.8)
    floor = Flat("floor", np.zeros(3), np.array([0, 1.0, 0]), 3.0)
    back = Similarity(
        1 / ELSEWHERE.scale, TURN.T, -TURN.T @ ELSEWHERE.translation / ELSEWHERE.scale
    )
    eyes = np.array([[0, 1.75, 0.0]])

    def seen(point, normal, name="found"):
        return Flat(name, ELSEWHERE.places(np.array(point)), TURN @ normal)

    lean = turned(2, 0, 0) @ table.normal
    found = [
        seen((0.1, 0.76, 0), lean),
        seen((0.1, 0.82, 0), -table.normal),  # a worse one of the same
        seen((0, 0.4, 0), table.normal, "halfway"),
        seen((2, 0.75, 0), table.normal, "beside"),
        seen((0.3, 0.75, 0.3), np.array([1.0, 0, 0]), "upright"),
    ]
    best, wrong = planes_judged(found, [table, floor], back, eyes)
    assert list(best) == ["table"]
    assert best["table"].degrees == pytest.approx(2)
    assert best["table"].offset == pytest.approx(0.01 / math.hypot(0.1, 0.99))
    assert wrong == ["halfway", "beside", "upright"]
