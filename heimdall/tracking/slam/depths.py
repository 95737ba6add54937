"""Cameras and points from what several looks saw of one picture's points, for several hypotheses at
once.

Bundle adjustment as in ``adjust``, for the beginning of a map. All looks see nearly all points, so
that nothing is sparse: hypotheses are stacks of dense matrices, adjusted in nearly the time of one.
A point is its ray in the reference and an inverse depth (Civera, Davison and Montiel, 2008): one
that is far away does no harm, and none passes the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.tracking.slam.adjust import exponential
from heimdall.tracking.slam.blocks import PAIRS, divided, divided_back, factored
from heimdall.tracking.slam.observations import OUTLIER, slopes_by_pose

DAMPING, LEAST_DAMPING = 1e-3, 1e-7
FLOOR = 1e-9  # of the information of a camera, that it has at least
NEAREST = 0.05  # of a point's depth in the reference: nearer to a camera's plane it is behind it
FARTHEST = 0.01  # least inverse depth, of the median one
BEHIND = 0.3  # distance on z = 1 that a point behind a camera counts as


@dataclass(frozen=True, eq=False)
class Looks:
    """What K later pictures see of a reference's points ``rays`` (n, 2): ``seen`` (K, n, 2) on
    z = 1, with any number where a point is not ``there`` (K, n)."""

    rays: np.ndarray
    seen: np.ndarray
    there: np.ndarray

    @classmethod
    def of(cls, rays: np.ndarray, seen: np.ndarray) -> Looks:
        """``seen`` being NaN where points were lost."""
        there = np.isfinite(seen[..., 0])
        return cls(rays, np.where(there[..., None], seen, 0.0), there)

    def only(self, looks: np.ndarray | slice, points: np.ndarray) -> Looks:
        """Some of the looks, at some of the points."""
        return Looks(self.rays[points], self.seen[looks][:, points], self.there[looks][:, points])


@dataclass(frozen=True, eq=False)
class Models:
    """B hypotheses: from the reference to each look ``rotations`` (B, K, 3, 3) and ``translations``
    (B, K, 3); of each point ``places`` (B, 3, n): x and y on the reference's plane z = 1, and the
    inverse depth. The scale of each hypothesis is free."""

    rotations: np.ndarray
    translations: np.ndarray
    places: np.ndarray

    def only(self, which: list[int]) -> Models:
        """Some of them."""
        return Models(self.rotations[which], self.translations[which], self.places[which])

    def at(self, points: np.ndarray) -> Models:
        """With some of the points."""
        return Models(self.rotations, self.translations, self.places[:, :, points])

    def scaled(self) -> Models:
        """The same with a median depth of 1."""
        places = self.places.copy()
        middle = np.median(places[:, 2], axis=1)
        places[:, 2] /= middle[:, None]
        return Models(self.rotations, self.translations * middle[:, None, None], places)


def errors(looks: Looks, models: Models) -> np.ndarray:
    """How far each look is off on z = 1, (B, K, n): infinite where a point is behind the camera,
    NaN where it was not seen."""
    view = _View(looks, models, 1.0)
    off = np.where(view.ahead, np.hypot(view.off[:, :, 0], view.off[:, :, 1]), np.inf)
    return np.where(looks.there, off, np.nan)


def fit(looks: Looks, models: Models, sigma: float, steps: int, *, held: bool = False) -> Models:
    """Models that explain looks better, from those given, by Levenberg-Marquardt ``steps`` of each;
    ``sigma`` is the standard deviation of x and y on z = 1, the reference's too, and a look farther
    off than 2 of them has little say (Cauchy). With ``held`` points stay as they are."""
    damping = np.full(len(models.places), DAMPING)
    view = _View(looks, models, OUTLIER * sigma)
    for _ in range(steps):
        try:
            turns, moves = _step(models, view, damping, held)
        except np.linalg.LinAlgError:  # of any hypothesis
            damping = damping * 10
            continue
        turned = exponential(turns[..., :3].reshape(-1, 3)).reshape(models.rotations.shape)
        moved = (turned @ models.translations[..., None])[..., 0] + turns[..., 3:]
        places = models.places + moves
        least = FARTHEST * np.median(models.places[:, 2], axis=1, keepdims=True)
        places[:, 2] = np.maximum(places[:, 2], least)
        new = Models(turned @ models.rotations, moved, places)
        seen = _View(looks, new, OUTLIER * sigma)
        better = seen.costs < view.costs
        damping = np.where(better, np.maximum(damping / 10, LEAST_DAMPING), damping * 10)
        if better.all():
            models, view = new, seen
        elif better.any():
            models = Models(
                np.where(better[:, None, None, None], new.rotations, models.rotations),
                np.where(better[:, None, None], new.translations, models.translations),
                np.where(better[:, None, None], new.places, models.places),
            )
            view = _View(looks, models, OUTLIER * sigma)
    return models


class _View:
    """What models make of looks: ``flat`` (B, K, 2, n) on z = 1, how far it is ``off`` from what is
    seen, ``own`` (B, 2, n) the same in the reference, how much each has to say (``share``,
    ``own_share``), and the ``costs`` (B,)."""

    def __init__(self, looks: Looks, models: Models, scale: float) -> None:
        places = models.places.copy()
        places[:, 2] = 1.0
        there = models.rotations @ places[:, None]  # (B, K, 3, n), in units of the depth
        there += models.translations[..., None] * models.places[:, None, 2:]
        self.ahead = there[:, :, 2] > NEAREST
        self.near = 1 / np.where(self.ahead, there[:, :, 2], 1.0)
        self.flat = there[:, :, :2] * self.near[:, :, None]
        self.off = self.flat - looks.seen.swapaxes(1, 2)
        square = (self.off**2).sum(axis=2) / scale**2
        square[~self.ahead] = (BEHIND / scale) ** 2
        self.share = (looks.there & self.ahead) / ((1 + square) * scale**2)
        self.own = models.places[:, :2] - looks.rays.T
        own = (self.own**2).sum(axis=1) / scale**2
        self.own_share = 1 / ((1 + own) * scale**2)
        self.costs = (np.log1p(square) * looks.there).sum(axis=(1, 2)) + np.log1p(own).sum(axis=1)


def _step(
    models: Models, view: _View, damping: np.ndarray, held: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Turns and moves of all cameras (B, K, 6), and moves of points (B, 3, n), which are eliminated
    first, as in ``adjust``."""
    hypotheses, cameras, count = view.near.shape
    by_camera = slopes_by_pose(view.flat, view.near * models.places[:, None, 2])
    weighed = by_camera * view.share[:, :, None, None]
    blocks = (weighed @ by_camera.swapaxes(3, 4)).sum(axis=2)  # (B, K, 6, 6)
    diagonal = np.einsum("bkii->bki", blocks)
    floor = FLOOR * diagonal.mean(axis=2, keepdims=True) + 1e-12
    diagonal += damping[:, None, None] * diagonal + floor
    pull = (weighed @ view.off[..., None]).sum(axis=2)
    if held:
        return -np.linalg.solve(blocks, pull)[..., 0], np.zeros_like(models.places)
    by_point = _by_point(models, view)
    lower, drawn = _points(by_point, view, damping)
    by_point = divided(by_point, lower[:, :, None, None])
    both = (weighed[..., None, :] * np.moveaxis(by_point, 0, 3)[:, :, :, None]).sum(axis=2)
    dense = both.reshape(hypotheses, 6 * cameras, 3 * count)
    system = -(dense @ dense.swapaxes(1, 2))
    each = np.arange(cameras)
    system.reshape(hypotheses, cameras, 6, cameras, 6)[:, each, :, each] += blocks.swapaxes(0, 1)
    mean = np.moveaxis(drawn, 0, 1).reshape(hypotheses, -1, 1)
    turns = np.linalg.solve(system, dense @ mean - pull.reshape(hypotheses, -1, 1))
    back = (mean + dense.swapaxes(1, 2) @ turns).reshape(hypotheses, 3, count)
    moves = -divided_back(back.swapaxes(0, 1), lower)
    return turns.reshape(hypotheses, cameras, 6), moves.swapaxes(0, 1)


def _points(
    by_point: np.ndarray, view: _View, damping: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Factors of points' blocks (6, B, n), and what looks draw them to, divided by those (3, B,
    n)."""
    weighed = by_point * view.share[:, :, None]
    said = np.stack([(weighed[i] * by_point[j]).sum(axis=(1, 2)) for i, j in PAIRS])
    drawn = (weighed * view.off).sum(axis=(2, 3))
    said[0] += view.own_share
    said[2] += view.own_share
    drawn[:2] += (view.own * view.own_share[:, None]).swapaxes(0, 1)
    lower = factored(said, damping[:, None])
    return lower, divided(drawn, lower)


def _by_point(models: Models, view: _View) -> np.ndarray:
    """Derivatives by a point's place, (3, B, K, 2, n)."""
    axes = models.rotations.copy()
    axes[..., 2] = models.translations
    axes = np.moveaxis(axes, 3, 0)[..., None]  # (3, B, K, 3, 1)
    found: np.ndarray = axes[..., :2, :] - view.flat * axes[..., 2:, :]
    found *= view.near[:, :, None]
    return found
