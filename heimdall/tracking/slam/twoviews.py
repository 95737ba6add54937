"""What two looks at the same points say: whether the camera has moved, and how it may have."""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.tracking.slam.depths import Looks
from heimdall.tracking.slam.triangulate import inverse_depths

RANSAC_PX, RANSAC_PLANE_PX = 1.5, 3.0
RANSAC_TRIALS = 300
BEFORE = 0.8  # of a plane's points before the camera
Relative = tuple[np.ndarray, np.ndarray]  # a rotation (3, 3) and a translation (3,)


def turns(looks: Looks) -> np.ndarray:
    """Rotations (K, 3, 3) that lead rays nearest to those of each look; robust (Kabsch, 1976, with
    weights)."""
    before, after, there = _rays(looks.rays), _rays(looks.seen), looks.there
    weights = there.astype(np.float64)
    found = np.empty((len(after), 3, 3))
    for _ in range(4):
        u, _, v = np.linalg.svd((after * weights[..., None]).swapaxes(1, 2) @ before)
        u[:, :, 2] *= np.linalg.det(u @ v)[:, None]
        found = u @ v
        off = ((after - before @ found.swapaxes(1, 2)) ** 2).sum(axis=2)
        middle = np.median(off, axis=1, keepdims=True)
        weights = there / (1 + off / np.maximum(2 * middle, 1e-9))
    return found


def expected(looks: Looks, turned: np.ndarray) -> np.ndarray:
    """Where looks would see points if the camera had only ``turned`` so, (K, n, 2)."""
    there = flat(looks.rays) @ turned.swapaxes(1, 2)
    return np.asarray(there[..., :2] / there[..., 2:])


def moved(looks: Looks) -> np.ndarray:
    """How far points have moved on z = 1 at the last look, other than by the camera's turn, (n,);
    all of them were seen there."""
    last = looks.only(slice(-1, None), np.arange(len(looks.rays)))
    off = last.seen - expected(last, turns(last))
    return np.asarray(np.hypot(*off[0].T))


def relative(one: np.ndarray, other: np.ndarray, pixel: float) -> tuple[list[Relative], np.ndarray]:
    """How a camera may have moved between two looks (n, 2), a pixel being so large on z = 1; and
    which points agree with any. By an essential matrix (OpenCV's USAC was as good as poselib in a
    fourth of the time), and by a homography, all that leave its points before the camera."""
    begun: list[Relative] = []
    agree = np.zeros(len(one), bool)
    eye = np.eye(3)
    found, mask = cv2.findEssentialMat(one, other, eye, cv2.USAC_DEFAULT, 0.999, RANSAC_PX * pixel)
    if found is not None and found.shape == (3, 3):
        agree |= mask[:, 0] > 0
        begun.append(_before(one[agree], other[agree], found))
    found, mask = cv2.findHomography(
        one, other, cv2.USAC_DEFAULT, RANSAC_PLANE_PX * pixel, maxIters=RANSAC_TRIALS
    )
    if found is not None and mask.sum() >= 8:
        agree |= mask[:, 0] > 0
        rays = flat(one)[mask[:, 0] > 0]
        _, turned, moves, normals = cv2.decomposeHomographyMat(found, eye)
        for turn, move, normal in zip(turned, moves, normals, strict=True):
            length = float(np.linalg.norm(move))
            if length > 1e-6 and np.mean(rays @ normal[:, 0] > 0) > BEFORE:
                begun.append((turn, move[:, 0] / length))
    return begun, agree


def _before(one: np.ndarray, other: np.ndarray, essential: np.ndarray) -> Relative:
    """Of the four movements that an essential matrix says, the one with points before the camera
    (cv2.recoverPose takes as long as finding the matrix)."""
    first, second, move = cv2.decomposeEssentialMat(essential)
    ways = [(turn, sign * move[:, 0]) for turn in (first, second) for sign in (1.0, -1.0)]
    return max(ways, key=lambda way: int((_inverse(one, other, *way) > 0).sum()))


def placed(one: np.ndarray, other: np.ndarray, turn: np.ndarray, move: np.ndarray) -> np.ndarray:
    """Points by two looks, as ``Models`` has them, (3, n); at the median depth where it is behind,
    or nowhere."""
    inverse = _inverse(one, other, turn, move)
    good = inverse > 0
    middle = float(np.median(inverse[good])) if good.any() else 1.0
    good &= (inverse > middle / 10) & (inverse < middle * 10)
    return np.stack([*one.T, np.where(good, inverse, middle)])


def _inverse(one: np.ndarray, other: np.ndarray, turn: np.ndarray, move: np.ndarray) -> np.ndarray:
    """Inverse depths (n,), in which what the second look saw is linear; negative behind it, too."""
    there = flat(one) @ turn.T
    inverse, _ = inverse_depths(there, move, other)
    return np.where(there[:, 2] + inverse * move[2] > 0, inverse, -np.abs(inverse))


def flat(spots: np.ndarray) -> np.ndarray:
    """Spots (n, 2) on the plane z = 1 as points (n, 3)."""
    return np.column_stack([spots, np.ones(len(spots))])


def _rays(spots: np.ndarray) -> np.ndarray:
    rays = np.concatenate([spots, np.ones((*spots.shape[:-1], 1))], axis=-1)
    return rays / np.linalg.norm(rays, axis=-1, keepdims=True)
