"""Places of points from cameras that are known."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.tracking.slam.triangulate import refine_points
from tests.tracking.slam.synthetic import SIGMA, Scene, scene


def refined(truth: Scene, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return refine_points(
        truth.rotations, truth.translations, truth.cameras, truth.which, truth.seen, points
    )


def test_points_are_found_from_known_cameras():
    truth = scene()
    found, worst, _ = refined(truth, np.zeros_like(truth.points))
    assert np.abs(found - truth.points).max() < 1e-9
    assert worst.max() < 1e-9


def test_the_worst_look_at_a_point_is_said():
    truth = scene(noise=SIGMA)
    found, worst, _ = refined(truth, truth.points)
    before = np.einsum("nij,nj->ni", truth.rotations[truth.cameras], found[truth.which])
    before += truth.translations[truth.cameras]
    off = np.linalg.norm(before[:, :2] / before[:, 2:] - truth.seen, axis=1)
    largest = [off[truth.which == each].max() for each in range(len(found))]
    assert np.allclose(worst, largest)
    truth.seen *= np.where(truth.which == 3, -1, 1)[:, None]
    truth.which[truth.which == 5] = 6
    _, worst, parallax = refined(truth, truth.points)
    assert worst[3] > 0.1
    assert worst[5] == parallax[5] == 0


def test_the_parallax_is_the_largest_angle_between_rays():
    truth = scene(seed=3)
    looks = (truth.cameras + truth.which) % 3 > 0
    truth.cameras, truth.which, truth.seen = (
        each[looks] for each in (truth.cameras, truth.which, truth.seen)
    )
    found, _, parallax = refined(truth, truth.points)
    centres = -np.einsum("nji,nj->ni", truth.rotations, truth.translations)
    for point, said in zip(range(len(found)), parallax, strict=True):
        rays = found[point] - centres[truth.cameras[truth.which == point]]
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        assert said == pytest.approx(
            np.arccos(np.clip((rays @ rays.T).min(), -1, 1)), rel=0.02, abs=1e-6
        )


def test_points_without_parallax_are_finite():
    truth = scene()
    truth.translations[:] = 0
    truth.seen = np.einsum("nij,nj->ni", truth.rotations[truth.cameras], truth.points[truth.which])
    truth.seen = truth.seen[:, :2] / truth.seen[:, 2:]
    found, _, parallax = refined(truth, truth.points)
    assert np.isfinite(found).all()
    assert np.isfinite(parallax).all()
