"""Bundle adjustment: poses of cameras and places of points, so that points are where cameras saw
them (Triggs, McLauchlan, Hartley and Fitzgibbon, 2000).

Levenberg-Marquardt steps with robust weights. Points are eliminated (the Schur complement, section
6.1), so that a step solves for the cameras only, and S = U - Y Y' is one product of dense matrices:
each point's block is factored, V = L L', and its looks' Jacobians are divided by L beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.tracking.slam.blocks import divided, divided_back, factored
from heimdall.tracking.slam.observations import (
    OUTLIER,
    Observations,
    State,
    View,
    arranged,
    in_cameras,
    rotations_of,
    slopes_by_point,
    slopes_by_pose,
    summed_by_point,
    viewed,
)

DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-9, 1e6
SETTLED = 1e-5  # of the cost: a step that gains less is the last one
FLOOR = 1e-10  # of a camera's information: what it has at least in each direction
NEAREST = 1e-3  # of the median depth: nearer to the camera's plane, a point is behind it
_LOWER = np.tril_indices(6)


@dataclass(frozen=True, eq=False)
class Adjusted:
    """``rotations`` (C, 3, 3) and ``translations`` (C, 3) from the world to each camera, ``points``
    (P, 3) of the world; ``errors`` (n,), how far each look is off on the plane z = 1, infinite
    where the point is behind the camera; the cost ``before`` and ``after``, in squared standard
    deviations, and how many ``steps`` lowered it."""

    rotations: np.ndarray
    translations: np.ndarray
    points: np.ndarray
    errors: np.ndarray
    before: float
    after: float
    steps: int


def adjust(
    rotations: np.ndarray,
    translations: np.ndarray,
    points: np.ndarray,
    cameras: np.ndarray,
    which: np.ndarray,
    seen: np.ndarray,
    fixed: np.ndarray,
    *,
    sigma: float,
    weights: np.ndarray | None = None,
    steps: int = 8,
) -> Adjusted:
    """Adjust cameras, but for those ``fixed`` (C,), and all points.

    Look i is that of camera ``cameras[i]`` at point ``which[i]``, at ``seen[i]`` on its plane
    z = 1; a camera looks at a point once. ``sigma`` is the standard deviation of x and y there,
    ``weights`` (n,) say how much each look counts. ``steps``: how many are tried. A step that does
    not lower the cost is not taken.

    What looks do not say, damping holds near where it was: the scale if one camera is fixed, all of
    the gauge if none is, a camera that sees nothing, the depth of a point without parallax. With
    all cameras fixed only points move. A point does not step behind a camera that saw it.
    """
    held = np.asarray(fixed, bool)[cameras]
    looks = arranged(cameras, which, seen, held, weights, len(points), OUTLIER * sigma)
    state = State(
        np.array(rotations, np.float64),
        np.array(translations, np.float64),
        np.ascontiguousarray(np.asarray(points, np.float64).T),
    )
    nearest = NEAREST * float(np.median(np.abs(in_cameras(looks, state)[2]))) if len(which) else 0.0
    view = viewed(looks, state, nearest)
    before, damping, taken = view.cost, DAMPING, 0
    system: _System | None = None
    dense = np.zeros((6 * len(looks.free), 3 * looks.count))
    for _ in range(steps):
        system = system or _System(looks, state, view)
        step = system.solved(damping, dense)
        new = None if step is None else _stepped(looks, state, view, *step, nearest)
        if new is None or not new[1].cost < view.cost:
            damping = min(damping * 10, MOST_DAMPING)
            continue
        gained = view.cost - new[1].cost
        (state, view), system = new, None
        damping, taken = max(damping / 10, LEAST_DAMPING), taken + 1
        if gained < SETTLED * view.cost:
            break
    if taken and len(looks.free):
        u, _, v = np.linalg.svd(state.rotations[looks.free])
        state.rotations[looks.free] = u @ v
    errors = np.empty(len(looks.camera))
    errors[looks.order] = view.errors
    return Adjusted(
        state.rotations, state.translations, np.ascontiguousarray(state.points.T), errors,
        before, view.cost, taken,
    )  # fmt: skip


class _System:
    """The normal equations at a state: of each point ``_points`` (6, P) and ``_pull`` (3, P), of
    each free camera ``_cameras`` (F, 6, 6) and ``_turn`` (6 F,), and the looks' Jacobians."""

    def __init__(self, looks: Observations, state: State, view: View) -> None:
        self._looks = looks
        scale = np.sqrt(view.share) / looks.scale
        self._by_point = by_point = slopes_by_point(rotations_of(looks, state), view, scale)
        off = view.off * scale
        summed = summed_by_point(looks, by_point, off)
        self._points, self._pull = summed[:6], summed[6:]
        self._sum_cameras(view, scale, off)

    def _sum_cameras(self, view: View, scale: np.ndarray, off: np.ndarray) -> None:
        looks = self._looks
        inner, free = looks.inner, len(looks.free)
        self._by_camera = by_camera = slopes_by_pose(
            view.flat[:, :inner], view.near[:inner], scale[:inner]
        )
        self._cameras, self._turn = np.empty((free, 6, 6)), np.empty(0)
        if not free:
            return
        said = np.empty((27, inner))
        for row, (i, j) in enumerate(zip(*_LOWER, strict=True)):
            said[row] = by_camera[0, i] * by_camera[0, j] + by_camera[1, i] * by_camera[1, j]
        said[21:] = by_camera[0] * off[0, :inner] + by_camera[1] * off[1, :inner]
        said = np.add.reduceat(said, looks.begins, axis=1)
        self._cameras[:, _LOWER[0], _LOWER[1]] = said[:21].T
        self._cameras[:, _LOWER[1], _LOWER[0]] = said[:21].T
        self._turn = said[21:].T.ravel()

    def solved(self, damping: float, dense: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The step: a turn and a move of each free camera, (F, 6), and moves of points, (3, P).
        ``dense`` is room for the matrix Y, 0 where no camera looks."""
        lower = factored(self._points, damping)
        pull = divided(self._pull, lower)
        if not len(self._turn):
            return np.empty((0, 6)), -divided_back(pull, lower)
        looks = self._looks
        inner, free = looks.inner, len(looks.free)
        spread = lower[:, looks.point[:inner]]
        left, right = (divided(each, spread) for each in self._by_point[:, :, :inner])
        across, down = self._by_camera
        blocks = across[:, None] * left + down[:, None] * right
        dense.ravel()[looks.places] = blocks.ravel()
        system = -(dense @ dense.T)  # one matrix twice: the symmetric product takes half as long
        damped = self._cameras.copy()
        diagonal = np.einsum("fii->fi", damped)
        diagonal += damping * diagonal + FLOOR * diagonal.mean(axis=1, keepdims=True) + 1e-300
        each = np.arange(free)
        system.reshape(free, 6, free, 6)[each, :, each, :] += damped
        try:
            turns = np.linalg.solve(system, dense @ pull.ravel() - self._turn)
        except np.linalg.LinAlgError:
            return None
        moves = -divided_back(pull + (turns @ dense).reshape(3, -1), lower)
        if not (np.isfinite(turns).all() and np.isfinite(moves).all()):
            return None
        return turns.reshape(free, 6), moves


def _stepped(
    looks: Observations,
    state: State,
    view: View,
    turns: np.ndarray,
    moves: np.ndarray,
    nearest: float,
) -> tuple[State, View]:
    rotations, translations = state.rotations.copy(), state.translations.copy()
    turned = exponential(turns[:, :3])
    rotations[looks.free] = turned @ rotations[looks.free]
    translations[looks.free] = (turned @ translations[looks.free][..., None])[..., 0] + turns[:, 3:]
    new = State(rotations, translations, state.points + moves)
    seen = viewed(looks, new, nearest)
    passed = view.ahead & ~seen.ahead
    if passed.any():  # one point does not refuse the step of all others
        held = looks.point[passed]
        new.points[:, held] = state.points[:, held]
        seen = viewed(looks, new, nearest)
    return new, seen


def exponential(turns: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) by Rodrigues vectors (n, 3), radians."""
    angle = np.linalg.norm(turns, axis=1)[:, None, None]
    safe = np.maximum(angle, 1e-9)
    cross = crossed(turns)
    square = cross @ cross
    return np.eye(3) + cross * (np.sin(safe) / safe) + square * ((1 - np.cos(safe)) / safe**2)


def crossed(vectors: np.ndarray) -> np.ndarray:
    """The matrices (n, 3, 3) that multiply by vectors (n, 3) crosswise."""
    x, y, z = vectors.T
    cross = np.zeros((len(vectors), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -z, y, -x
    return cross - cross.transpose(0, 2, 1)
