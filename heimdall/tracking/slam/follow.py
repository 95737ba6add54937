"""A keyframe's points found again in another picture, always against the keyframe: so nothing
drifts, and what a hand has hidden is found again behind it."""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.tracking.flow import followed
from heimdall.tracking.patch import moved
from heimdall.tracking.pose.reference import alike, patches
from heimdall.tracking.slam.model import Keyframe
from heimdall.tracking.slam.picture import WINDOW, Bent, Picture

EDGE_PX = 6
ALIKE = 0.6  # correlation of a point's surroundings with what the keyframe saw
BENT = 0.12  # by which a keyframe has to be bent before points are looked for in it
STEPS = 12, 0.02
FITTED = 60  # points by which it is known how it has to be bent


def follow(
    keyframe: Keyframe,
    at: np.ndarray,
    guess: np.ndarray,
    picture: Picture,
    levels: int,
    least: float = ALIKE,
    rough: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Where points ``at`` (n,) of ``keyframe.ids`` are in ``picture``, near ``guess`` (n, 2): their
    pixels (n, 2), and which were found (n,). With more ``levels`` they may be farther away, about
    8 pixels times 2 to that power. ``rough``: in half the size only. ``least``: the correlation of
    a point's surroundings with what the keyframe saw."""
    if not len(at):
        return np.empty((0, 2)), np.zeros(0, bool)
    start = keyframe.pixels[at]
    seen: Picture | Bent = keyframe.picture
    by = _bending(start, guess)
    if by is not None:
        seen = keyframe.picture.bent(by, start)
        start = moved(seen.by, start)
    begin, found = start.astype(np.float32), guess.astype(np.float32)
    if levels > 1:  # half the size first: far points are found there, and it takes a quarter
        halves = begin / 2 - 0.25, found / 2 - 0.25
        near, good = followed(seen.half, picture.half, *halves, levels - 1, WINDOW, STEPS)
        found, levels = near * 2 + np.float32(0.5), 0
        if rough:
            there = found.astype(np.float64)
            good &= picture.inside(there, EDGE_PX)
            if good.any():
                similar = alike(
                    patches(seen.half, begin[good] / 2), patches(picture.half, near[good])
                )
                good[good] = similar > ALIKE
            return there, good
    found, good = followed(seen.grey, picture.grey, begin, found, levels, WINDOW, STEPS)
    there = found.astype(np.float64)
    kept = good & picture.inside(there, EDGE_PX)
    if kept.any():
        similar = alike(patches(seen.grey, begin[kept]), patches(picture.grey, found[kept]))
        kept[kept] = similar > least
    return there, kept


def _bending(start: np.ndarray, guess: np.ndarray) -> np.ndarray | None:
    """The affine map (2, 3) that leads from the one to the other, roughly; None where pictures may
    be compared as they are."""
    if len(start) < 8:
        return None
    step = max(1, len(start) // FITTED)
    own = np.column_stack([start[::step], np.ones(len(start[::step]))])
    solved = np.linalg.lstsq(own, guess[::step], rcond=None)[0].T
    if np.abs(solved[:, :2] - np.eye(2)).max() < BENT or not np.isfinite(solved).all():
        return None
    if not 0.2 < abs(np.linalg.det(solved[:, :2])) < 5:
        return None
    return np.asarray(solved)


def corners(picture: Picture, taken: np.ndarray, most: int, apart_px: float = 13.0) -> np.ndarray:
    """New points that can be followed, (n, 2), at a distance from those ``taken`` (m, 2)."""
    if most < 1:
        return np.empty((0, 2))
    # Half the size takes a quarter of the time, and a corner need not be exact.
    half, apart = picture.half, apart_px / 2
    free = np.full(half.shape, 255, np.uint8)
    for x, y in np.round(taken / 2).astype(int).tolist():
        cv2.circle(free, (x, y), int(apart), 0, -1)
    margin = WINDOW // 4 + 2
    free[:margin], free[-margin:], free[:, :margin], free[:, -margin:] = 0, 0, 0, 0
    found = cv2.goodFeaturesToTrack(half, most, 0.006, apart, mask=free, blockSize=3)
    return np.empty((0, 2)) if found is None else found[:, 0].astype(np.float64) * 2 + 0.5


def spread_out(
    pixels: np.ndarray, order: np.ndarray, size: tuple[int, int], cell: int, each: int
) -> np.ndarray:
    """Of points at ``pixels`` (n, 2), taken by ``order`` (n,), no more than ``each`` of them in a
    cell of the picture: their numbers."""
    columns = size[0] // cell + 1
    across, down = (pixels[order] // cell).astype(int).T
    which = down * columns + across
    by_cell = np.argsort(which, kind="stable")
    sorted_ = which[by_cell]
    first = np.searchsorted(sorted_, sorted_)
    rank = np.arange(len(sorted_)) - first
    return order[np.sort(by_cell[rank < each])]
