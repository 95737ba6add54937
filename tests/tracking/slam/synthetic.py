"""Cameras in a row before a cloud of points, and what they see of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.tracking.slam.adjust import Adjusted, adjust

SIGMA = 0.8 / 520  # on the plane z = 1


@dataclass
class Scene:
    """True poses and points, what is seen of them, and a start nearby."""

    rotations: np.ndarray
    translations: np.ndarray
    points: np.ndarray
    cameras: np.ndarray
    which: np.ndarray
    seen: np.ndarray
    begin: tuple[np.ndarray, np.ndarray, np.ndarray]

    def adjusted(
        self, fixed: np.ndarray, steps: int = 8, weights: np.ndarray | None = None
    ) -> Adjusted:
        return adjust(
            *self.begin, self.cameras, self.which, self.seen, fixed,
            sigma=SIGMA, weights=weights, steps=steps,
        )  # fmt: skip

    def off(self, found: Adjusted) -> tuple[float, float]:
        """The worst camera's turn in degrees, and how far its centre is away."""
        turns = np.einsum("nij,nij->n", found.rotations, self.rotations)
        centres = [
            -np.einsum("nji,nj->ni", turn, move)
            for turn, move in (
                (found.rotations, found.translations),
                (self.rotations, self.translations),
            )
        ]
        degrees = np.degrees(np.arccos(np.clip((turns - 1) / 2, -1, 1)))
        return degrees.max(), np.linalg.norm(centres[0] - centres[1], axis=1).max()


def turned(vectors: np.ndarray) -> np.ndarray:
    """Rotations close to none, (n, 3, 3)."""
    x, y, z = vectors.T
    cross = np.zeros((len(vectors), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -z, y, -x
    u, _, v = np.linalg.svd(np.eye(3) + cross - cross.transpose(0, 2, 1))
    return u @ v


def scene(
    seed: int = 1,
    cameras: int = 8,
    points: int = 150,
    noise: float = 0.0,
    wrong: float = 0.0,
    fixed: int = 2,
) -> Scene:
    """Cameras in a row, points before them, each seen by all; all but the first ``fixed`` cameras
    start elsewhere."""
    draw = np.random.default_rng(seed)
    rotations = turned(draw.normal(0, 0.1, (cameras, 3)))
    centres = np.column_stack([np.linspace(-1, 1, cameras), draw.normal(0, 0.1, (cameras, 2))])
    translations = -np.einsum("nij,nj->ni", rotations, centres)
    there = draw.uniform((-2, -1.5, 1.5), (2, 1.5, 4), (points, 3))
    which, camera = np.divmod(draw.permutation(cameras * points), cameras)
    before = np.einsum("nij,nj->ni", rotations[camera], there[which]) + translations[camera]
    seen = before[:, :2] / before[:, 2:] + draw.normal(0, 1, (len(which), 2)) * noise
    outlier = draw.random(len(which)) < wrong
    seen[outlier] += draw.normal(0, 0.06, (int(outlier.sum()), 2))
    free = np.arange(cameras) >= fixed
    shift = free[:, None] * draw.normal(0, 0.01, (2, cameras, 3))
    begin = (
        np.where(free[:, None, None], turned(shift[0]) @ rotations, rotations),
        translations + shift[1],
        there + draw.normal(0, 0.03, there.shape),
    )
    return Scene(rotations, translations, there, camera, which, seen, begin)


def held(cameras: int, count: int) -> np.ndarray:
    return np.arange(cameras) < count
