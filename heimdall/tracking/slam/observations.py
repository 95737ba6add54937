"""Observations of points by cameras, what a state of the map makes of them, and their derivatives.

All of it is arithmetic on arrays of all observations, a component at a time,
which numpy does fastest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.tracking.slam.blocks import PAIRS

OUTLIER = 2.0  # standard deviations: a look farther off loses its say (Cauchy)
BEHIND = 1.0  # distance on z = 1 that a point behind a camera counts as


@dataclass(frozen=True, eq=False)
class State:
    """Poses, and points (3, P)."""

    rotations: np.ndarray
    translations: np.ndarray
    points: np.ndarray


@dataclass(frozen=True, eq=False)
class Observations:
    """All looks: first those of ``free`` cameras, by camera and point, so that what is written to
    a matrix and what is summed for a camera lies in one piece."""

    order: np.ndarray  # of looks, as they were given
    camera: np.ndarray
    point: np.ndarray
    seen: np.ndarray  # (2, n)
    weight: np.ndarray | None
    free: np.ndarray  # cameras
    begins: np.ndarray  # the first look of each of them
    count: int  # points
    scale: float  # distance on z = 1 at which a look is an outlier
    places: np.ndarray  # of looks' blocks in the matrix Y, (18 m,)
    sums: np.ndarray  # of what looks say of points, (9 n,)

    @property
    def inner(self) -> int:
        """How many looks free cameras have."""
        return len(self.places) // 18


def arranged(
    cameras: np.ndarray,
    which: np.ndarray,
    seen: np.ndarray,
    held: np.ndarray,
    weights: np.ndarray | None,
    count: int,
    scale: float,
) -> Observations:
    order = np.lexsort((which, cameras, held))
    camera, point = cameras[order], which[order]
    inner = len(order) - int(held.sum())
    free, begins, own = np.unique(camera[:inner], return_index=True, return_inverse=True)
    rows = own * 6 + np.arange(6)[:, None]
    columns = point[:inner] + count * np.arange(3)[:, None]
    return Observations(
        order=order,
        camera=camera,
        point=point,
        seen=np.ascontiguousarray(np.asarray(seen, np.float64)[order].T),
        weight=None if weights is None else np.asarray(weights, np.float64)[order],
        free=free,
        begins=begins,
        count=count,
        scale=scale,
        places=(rows[:, None] * (3 * count) + columns).ravel(),
        sums=(point + count * np.arange(9)[:, None]).ravel(),
    )


@dataclass(frozen=True, eq=False)
class View:
    """What a state makes of all looks."""

    flat: np.ndarray  # (2, n) on z = 1
    near: np.ndarray  # (n,) 1 / depth
    off: np.ndarray  # (2, n) from where it was seen
    share: np.ndarray  # (n,) how much each look has to say
    ahead: np.ndarray  # (n,) whether the point is before the camera
    cost: float

    @property
    def errors(self) -> np.ndarray:
        """Distances on z = 1, (n,)."""
        return np.where(self.ahead, np.hypot(*self.off), np.inf)


def viewed(looks: Observations, state: State, nearest: float) -> View:
    there = in_cameras(looks, state)
    ahead = there[2] > nearest
    near = 1 / np.where(ahead, there[2], 1.0)
    flat = there[:2] * near
    off = flat - looks.seen
    square = (off[0] ** 2 + off[1] ** 2) / looks.scale**2
    square[~ahead] = (BEHIND / looks.scale) ** 2
    costs, share = np.log1p(square), ahead / (1 + square)
    if looks.weight is not None:
        costs *= looks.weight
        share *= looks.weight
    return View(flat, near, off, share, ahead, float(costs.sum()) * OUTLIER**2)


def in_cameras(looks: Observations, state: State) -> np.ndarray:
    """Each look's point before its camera, (3, n)."""
    turned = rotations_of(looks, state)
    point = state.points[:, looks.point]
    moved: np.ndarray = (turned * point).sum(axis=1)
    moved += state.translations.T[:, looks.camera]
    return moved


def rotations_of(looks: Observations, state: State) -> np.ndarray:
    """The rotation of each look's camera, (3, 3, n)."""
    flat = np.ascontiguousarray(state.rotations.reshape(-1, 9).T)
    return np.take(flat, looks.camera, axis=1).reshape(3, 3, -1)


def per_point(looks: Observations, said: np.ndarray) -> np.ndarray:
    """What looks say of their points, (k, n), summed for each point, (k, P)."""
    rows, count = len(said), looks.count
    index = looks.sums[: said.size]
    summed: np.ndarray = np.bincount(index, said.ravel(), rows * count).astype(np.float64)
    return summed.reshape(rows, count)


def slopes_by_point(turned: np.ndarray, view: View, scale: np.ndarray) -> np.ndarray:
    """Derivatives of each look by its point, (2, 3, n)."""
    near = view.near * scale
    return np.stack([(turned[k] - view.flat[k] * turned[2]) * near for k in (0, 1)])


def summed_by_point(looks: Observations, rows: np.ndarray, aims: np.ndarray) -> np.ndarray:
    """The normal equations of each point, (9, P): its block (``blocks``), then what pulls at it;
    looks say ``rows`` (2, 3, n) x = ``aims`` (2, n)."""
    said = np.empty((9, rows.shape[2]))
    for row, (i, j) in enumerate(PAIRS):
        said[row] = rows[0, i] * rows[0, j] + rows[1, i] * rows[1, j]
    said[6:] = rows[0] * aims[0] + rows[1] * aims[1]
    return per_point(looks, said)


def slopes_by_pose(
    flat: np.ndarray, near: np.ndarray, scale: np.ndarray | float = 1.0
) -> np.ndarray:
    """Derivatives by a turn of the camera's axes and a move, (..., 2, 6, n), of points at ``flat``
    (..., 2, n) on z = 1 and 1 / depth ``near`` (..., n), times ``scale``."""
    x, y = flat[..., 0, :], flat[..., 1, :]
    product = x * y
    found = np.zeros((*x.shape[:-1], 2, 6, x.shape[-1]))
    across, down = found[..., 0, :, :], found[..., 1, :, :]
    across[..., 0, :], across[..., 1, :], across[..., 2, :] = -product, 1 + x * x, -y
    across[..., 3, :], across[..., 5, :] = near, -x * near
    down[..., 0, :], down[..., 1, :], down[..., 2, :] = -1 - y * y, product, x
    down[..., 4, :], down[..., 5, :] = near, -y * near
    found *= scale
    return found
