"""Pictures by their features: ORB (Rublee et al., 2011) at one scale, learnt at many.

A picture is learnt in all sizes in which it may be seen, each with as many features, and tilted.
ORB's own pyramid gives most of its features to the finest level, and a printed page on a table has
but a few of those that the camera sees. So a frame needs one level or two, which is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

SIDES_PX = (480.0, 80.0)  # longer side of a picture as it is learnt, from the largest down
STEP = 1.35  # between two of them; ORB bears half of that
TILTS = (0.0, 55.0)  # degrees from which it is learnt
EACH = 120  # features of each size and tilt
BORDER = 20  # around a picture, so that features may lie at its edge
EDGE = 15  # of a frame in which there can be none
FAST, FAINT = 20, 8  # contrast of corners, grey levels; where few are found
FEW = 250
RATIO = 0.8  # a match must be so much nearer than the next best
NEIGHBOURS = 4
SAME_PLACE = 0.03  # of the extent of all: as near as that is the same
ALIKE = 64  # of 256 bits that differ


def learnt(grey: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Descriptors (n, 32) and places (n, 2) in ``grey``: as seen small and large, from the front
    and from the sides."""
    descriptors, places = [], []
    finder = _finder(EACH, 1, FAINT)
    most = max(grey.shape)
    side = min(SIDES_PX[0], most)
    while side >= min(SIDES_PX[1], most):
        small, scale = _resized(grey, side / most)
        for tilt in TILTS:
            for turn in (0.0, 90.0) if tilt else (0.0,):
                keypoints, found, view = _seen(finder, small, tilt, turn)
                if found is None:
                    continue
                back = cv2.invertAffineTransform(view)
                own = _places(keypoints) @ back[:, :2].T + back[:, 2]
                kept = ((own >= 1) & (own < np.array(small.shape[::-1]) - 2)).all(axis=1)
                descriptors.append(found[kept])
                places.append((own[kept] + 0.5) / scale - 0.5)
        side /= STEP
    if not descriptors:
        return np.empty((0, 32), np.uint8), np.empty((0, 2))
    return np.concatenate(descriptors), np.concatenate(places)


def described(grey: np.ndarray, most: int, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Places (n, 2) and descriptors (n, 32) of a frame, in halvings of it."""
    for contrast in (FAST, FAINT):
        keypoints, found = _finder(most, levels, contrast).detectAndCompute(grey, None)
        if found is not None and len(found) >= FEW:
            break
    if found is None:
        return np.empty((0, 2)), np.empty((0, 32), np.uint8)
    return _places(keypoints), found


def matched(some: np.ndarray, known: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Pairs (n, 2) of features of a frame and known ones that look alike by far more than any
    at another of the ``places`` (n, 2 or 3), those of ``known``."""
    if not len(some) or len(known) < NEIGHBOURS:
        return np.empty((0, 2), int)
    away, which = cv2.batchDistance(
        some, known, cv2.CV_32S, normType=cv2.NORM_HAMMING, K=NEIGHBOURS
    )
    there = places[which]  # one place is there in several sizes, which are no rivals
    apart = np.linalg.norm(there - there[:, :1], axis=2) > SAME_PLACE * np.ptp(places, axis=0).max()
    rival = np.where(apart.any(axis=1), apart.argmax(axis=1), NEIGHBOURS - 1)
    rows = np.arange(len(some))
    near = away[:, 0] < RATIO * away[rows, rival]
    near |= ~apart.any(axis=1) & (away[:, 0] < ALIKE)
    return np.column_stack([rows[near], which[near, 0]])


def _finder(most: int, levels: int, contrast: int) -> cv2.ORB:
    return cv2.ORB.create(
        most, 2.0, levels, edgeThreshold=EDGE, patchSize=31, fastThreshold=contrast
    )


def _resized(grey: np.ndarray, scale: float) -> tuple[np.ndarray, float]:
    size = [max(1, round(each * scale)) for each in grey.shape[::-1]]
    return cv2.resize(grey, size, interpolation=cv2.INTER_AREA), scale


def _seen(
    finder: cv2.ORB, grey: np.ndarray, tilt: float, turn: float
) -> tuple[Sequence[cv2.KeyPoint], np.ndarray | None, np.ndarray]:
    """Features of ``grey`` turned in its plane and tilted then, and the matrix (2, 3) to there."""
    middle = (np.array(grey.shape[::-1]) - 1) / 2
    view = cv2.getRotationMatrix2D(tuple(middle.tolist()), turn, 1.0)
    view[1] *= math.cos(math.radians(tilt))
    rows, columns = grey.shape
    corners = np.array([[0, 0], [columns, 0], [columns, rows], [0, rows]]) @ view[:, :2].T
    low, high = (corners + view[:, 2]).min(axis=0), (corners + view[:, 2]).max(axis=0)
    view[:, 2] += BORDER - low
    size = np.ceil(high - low).astype(int) + 2 * BORDER
    seen = cv2.warpAffine(grey, view, size.tolist(), borderMode=cv2.BORDER_REPLICATE)
    keypoints, found = finder.detectAndCompute(seen, None)
    return keypoints, found, view


def _places(keypoints: Sequence[cv2.KeyPoint]) -> np.ndarray:
    return np.array([each.pt for each in keypoints], np.float64).reshape(-1, 2)
