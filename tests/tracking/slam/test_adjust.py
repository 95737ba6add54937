"""Bundle adjustment: right in spite of outliers, never worse than before, no harm by nonsense."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.tracking.slam.adjust import adjust
from tests.tracking.slam.synthetic import SIGMA, held, scene


def test_cameras_and_points_come_to_where_they_are():
    truth = scene()
    found = truth.adjusted(held(8, 2), steps=12)
    degrees, away = truth.off(found)
    assert degrees < 1e-4
    assert away < 1e-6
    assert np.abs(found.points - truth.points).max() < 1e-5
    assert found.errors.max() < 1e-6
    assert found.after < 1e-6 < found.before


@pytest.mark.parametrize("seed", range(3))
def test_a_tenth_of_wrong_looks_moves_cameras_little(seed):
    clean, foul = (scene(seed, noise=SIGMA, wrong=each) for each in (0.0, 0.1))
    right = clean.off(clean.adjusted(held(8, 2)))
    robust = foul.off(foul.adjusted(held(8, 2)))
    assert right[0] < 0.1
    assert robust[0] < 0.12
    assert robust[1] < 0.008


def test_fixed_cameras_stay_exactly():
    truth = scene(noise=SIGMA)
    fixed = np.arange(8) % 3 == 0
    found = truth.adjusted(fixed)
    assert np.array_equal(found.rotations[fixed], truth.begin[0][fixed])
    assert np.array_equal(found.translations[fixed], truth.begin[1][fixed])
    assert not np.array_equal(found.translations[~fixed], truth.begin[1][~fixed])


def test_without_a_free_camera_points_are_adjusted():
    truth = scene(fixed=8)
    found = truth.adjusted(held(8, 8))
    assert np.abs(found.points - truth.points).max() < 1e-6


@pytest.mark.parametrize("fixed", [0, 1])
def test_what_looks_do_not_say_stays_near_the_start(fixed):
    truth = scene(noise=SIGMA, fixed=fixed)
    found = truth.adjusted(held(8, fixed), steps=12)
    assert found.errors.mean() < 1.5 * SIGMA
    spread = [np.linalg.norm(each - each.mean(axis=0)) for each in (found.points, truth.points)]
    assert spread[0] == pytest.approx(spread[1], rel=0.05)
    degrees, away = truth.off(found)
    assert degrees < 2
    assert away < 0.1


def test_rotations_stay_rotations():
    found = scene(noise=SIGMA, wrong=0.3).adjusted(held(8, 2))
    products = found.rotations @ found.rotations.transpose(0, 2, 1)
    assert np.abs(products - np.eye(3)).max() < 1e-12
    assert np.linalg.det(found.rotations) == pytest.approx(np.ones(8))


@pytest.mark.parametrize("seed", range(4))
def test_the_cost_never_rises_even_from_nonsense(seed):
    truth = scene(seed, wrong=0.5)
    draw = np.random.default_rng(seed)
    rotations, translations, points = truth.begin
    truth.begin = rotations, translations, points + draw.normal(0, 1.0, points.shape)
    costs = [truth.adjusted(held(8, 2), steps=count).after for count in range(5)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == truth.adjusted(held(8, 2)).before
    assert truth.adjusted(held(8, 2), steps=0).steps == 0


def test_points_behind_a_camera_are_said_and_do_no_harm():
    truth = scene()
    behind = truth.which < 10
    truth.begin[2][:10] = truth.points[:10] * -1
    found = truth.adjusted(held(8, 2))
    assert np.isinf(found.errors[behind]).all()
    for each in (found.rotations, found.translations, found.points):
        assert np.isfinite(each).all()
    assert truth.off(found)[0] < 1e-3


def test_a_camera_that_sees_nothing_and_a_point_that_nobody_sees_stay():
    truth = scene()
    looks = (truth.cameras != 5) & (truth.which != 7)
    truth.cameras, truth.which, truth.seen = (
        each[looks] for each in (truth.cameras, truth.which, truth.seen)
    )
    found = truth.adjusted(held(8, 2))
    assert np.array_equal(found.rotations[5], truth.begin[0][5])
    assert np.array_equal(found.points[7], truth.begin[2][7])
    assert np.isfinite(found.points).all()
    assert len(found.errors) == len(truth.which)


def test_nothing_seen_changes_nothing():
    truth = scene()
    none = np.empty(0, int)
    found = adjust(*truth.begin, none, none, np.empty((0, 2)), held(8, 2), sigma=SIGMA)
    assert np.array_equal(found.points, truth.begin[2])
    assert found.before == found.after == 0


def test_errors_come_in_the_order_of_looks():
    truth = scene(noise=SIGMA)
    found = truth.adjusted(held(8, 2))
    before = np.einsum("nij,nj->ni", found.rotations[truth.cameras], found.points[truth.which])
    before += found.translations[truth.cameras]
    off = np.linalg.norm(before[:, :2] / before[:, 2:] - truth.seen, axis=1)
    assert np.allclose(found.errors, off)


def test_a_look_of_weight_0_has_no_say():
    truth = scene(noise=SIGMA)
    weights = np.ones(len(truth.which))
    weights[::5] = 0
    truth.seen[::5] += 0.5
    left_out = truth.adjusted(held(8, 2), weights=weights)
    looks = weights > 0
    truth.cameras, truth.which, truth.seen = (
        each[looks] for each in (truth.cameras, truth.which, truth.seen)
    )
    assert np.allclose(left_out.points, truth.adjusted(held(8, 2)).points, atol=1e-9)


def test_what_was_given_is_not_changed():
    truth = scene(noise=SIGMA)
    copies = [each.copy() for each in truth.begin]
    truth.adjusted(held(8, 2))
    assert all(np.array_equal(*pair) for pair in zip(copies, truth.begin, strict=True))
