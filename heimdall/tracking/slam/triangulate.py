"""Places of points by cameras whose poses are known."""

from __future__ import annotations

import numpy as np

from heimdall.tracking.slam.blocks import divided, divided_back, factored
from heimdall.tracking.slam.observations import (
    Observations,
    State,
    View,
    arranged,
    per_point,
    rotations_of,
    slopes_by_point,
    summed_by_point,
    viewed,
)


def refine_points(
    rotations: np.ndarray,
    translations: np.ndarray,
    cameras: np.ndarray,
    which: np.ndarray,
    seen: np.ndarray,
    points: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of points from all looks at them, by cameras whose poses are known: the linear
    solution (Hartley and Zisserman, 2004, 12.2), then two Gauss-Newton steps on what is seen.

    Looks are given as to ``adjust``; ``points`` (P, 3) are returned where looks say nothing better.
    Returns places (P, 3); the largest error of each point's looks on z = 1, (P,), infinite where
    it is behind a camera, 0 without looks; and the largest angle between its rays, (P,) radians
    (found in two sweeps over them: with three looks or more it may be a little too small).
    """
    given = np.ascontiguousarray(np.asarray(points, np.float64).T)
    count = given.shape[1]
    if not len(which):
        return given.T.copy(), np.zeros(count), np.zeros(count)
    held = np.ones(len(which), bool)
    looks = arranged(cameras, which, seen, held, None, count, np.inf)
    poses = np.asarray(rotations, np.float64), np.asarray(translations, np.float64)
    turned = rotations_of(looks, State(*poses, given))
    moved = poses[1].T[:, looks.camera]
    found = _linear(looks, turned, moved, given)
    nearest = 1e-12
    for _ in range(2):
        state = State(*poses, found)
        view = viewed(looks, state, nearest)
        found = _refined(looks, turned, view, found)
    state = State(*poses, found)
    view = viewed(looks, state, nearest)
    worst = np.zeros(count)
    order = np.argsort(view.errors, kind="stable")
    worst[looks.point[order]] = view.errors[order]  # the last one stays
    return np.ascontiguousarray(found.T), worst, _parallax(looks, turned, moved, found)


def inverse_depths(
    rays: np.ndarray, move: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of points by a second camera that has moved by ``move`` (3,), their inverse depths (n,) in
    the first one, and how strongly that depends on what is ``seen`` (n, 2), squared: 0 says
    nothing. ``rays`` (n, 3) are those of the first one with z = 1 there, in the second one's axes.

    seen = (ray + inverse move) / depth is linear in the inverse depth (Civera et al., 2008)."""
    along = move[:2] - seen * move[2]
    across = seen * rays[:, 2:] - rays[:, :2]
    square = (along**2).sum(axis=1)
    return (along * across).sum(axis=1) / np.maximum(square, 1e-18), square


def _linear(
    looks: Observations, turned: np.ndarray, moved: np.ndarray, given: np.ndarray
) -> np.ndarray:
    rows = np.stack([turned[k] - looks.seen[k] * turned[2] for k in (0, 1)])
    aims = np.stack([looks.seen[k] * moved[2] - moved[k] for k in (0, 1)])
    return _solved(looks, rows, aims, given)


def _refined(looks: Observations, turned: np.ndarray, view: View, found: np.ndarray) -> np.ndarray:
    rows = slopes_by_point(turned, view, view.ahead.astype(float))
    step = _solved(looks, rows, -view.off * view.ahead, np.zeros_like(found))
    return found + step


def _solved(
    looks: Observations, rows: np.ndarray, aims: np.ndarray, otherwise: np.ndarray
) -> np.ndarray:
    """Of each point the least squares of its looks: x (3, P) with rows (2, 3, n) x = aims."""
    summed = summed_by_point(looks, rows, aims)
    lower = factored(summed[:6], 0.0)
    found = divided_back(divided(summed[6:], lower), lower)
    return np.where(np.isfinite(found).all(axis=0) & (summed[0] > 0), found, otherwise)


def _parallax(
    looks: Observations, turned: np.ndarray, moved: np.ndarray, found: np.ndarray
) -> np.ndarray:
    centres = -(turned * moved[:, None]).sum(axis=0)
    rays = found[:, looks.point] - centres
    rays /= np.maximum(np.sqrt((rays**2).sum(axis=0)), 1e-300)
    middle = per_point(looks, rays)
    middle /= np.maximum(np.sqrt((middle**2).sum(axis=0)), 1e-300)
    count = looks.count
    farthest, most = middle, np.zeros(count)
    for sweep in range(3):
        chord = ((rays - farthest[:, looks.point]) ** 2).sum(axis=0)
        order = np.argsort(chord, kind="stable")
        point = looks.point[order]
        reached = np.zeros(count)
        farthest = np.zeros((3, count))
        reached[point], farthest[:, point] = chord[order], rays[:, order]  # the last one stays
        if sweep:  # the first was from the middle
            most = np.maximum(most, reached)
    return np.asarray(2 * np.arcsin(np.minimum(np.sqrt(most) / 2, 1.0)))
