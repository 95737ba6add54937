"""Sparse optical flow: points followed from frame to frame by pyramidal Lucas-Kanade.

All work is done by OpenCV on a reduced grey picture, off the GPU and without the interpreter
lock: about 130 points, followed forth and back, take under 1 ms a frame (one x86 core).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.models.letterbox import shrink

WIDTH = 320  # of the reduced picture, or its longer side
CELL = 22  # reduced pixels: at most one new point a cell, so that points cover the picture
WINDOW = (9, 9)
LEVELS = 3
STEPS = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 8, 0.03)
RETURN_ERROR = 0.7  # reduced pixels: a point followed forth and back must come home
FAINTEST = 2e-5  # smallest eigenvalue of a corner worth following
REFILL_EVERY = 4  # frames between looks for new corners
SMALLEST = 16  # reduced pixels: the dense flow is not defined on less
FINEST = 3  # the dense flow stops at an eighth of the reduced picture: a third of its time
GRID = 2  # reduced pixels: a cell of the dense flow
CUT_SHARE = 0.2  # fewer survivors of the points than this: another scene


@dataclass(frozen=True, eq=False)
class Tracks:
    """Where points are in one frame. A point keeps its id as long as it is followed.

    ``ids`` (n,) ascending; ``points`` (n, 2) float32 pixels of the frame. ``cut``: the scene has
    changed, and nothing before this frame can be carried here. ``back`` (rows, columns, 2), where
    it was asked for, is a grid over the frame: each cell's way back to where it was in the frame
    before, in cells.
    """

    sequence: int
    ids: np.ndarray
    points: np.ndarray
    cut: bool = False
    back: np.ndarray | None = None


def common(ids: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the ids that both ascending arrays hold, in each."""
    _, mine, theirs = np.intersect1d(ids, others, assume_unique=True, return_indices=True)
    return mine, theirs


class Flow:
    """Follows points through a sequence of pictures, BGR uint8 (h, w, 3)."""

    def __init__(self) -> None:
        self._grey = np.empty((0, 0), np.uint8)
        self._shape: tuple[int, ...] = ()
        self._ids = np.empty(0, np.int64)
        self._points = np.empty((0, 2), np.float32)  # of the reduced picture
        self._dense = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)
        self._dense.setFinestScale(FINEST)
        self._next_id = 0
        self._age = 0

    def advance(self, image: np.ndarray, sequence: int, *, dense: bool = False) -> Tracks:
        """The points in ``image``, the frame after the one given before, and the dense flow."""
        height, width = image.shape[:2]
        scale = max(1.0, max(height, width) / WIDTH)
        grey = _reduced(image, scale)
        cut = image.shape != self._shape or not self._follow(grey)
        if cut:
            self._ids, self._points = self._ids[:0], self._points[:0]
        if cut or self._age % REFILL_EVERY == 0:
            self._refill(grey)
        back = self._back(grey) if dense and not cut else None
        self._grey, self._shape = grey, image.shape
        self._age += 1
        # Pixel centres: reduced pixel 0 covers frame pixels 0 to scale - 1.
        points = (self._points + np.float32(0.5)) * np.float32(scale) - np.float32(0.5)
        return Tracks(sequence, self._ids, points, cut, back)

    def _follow(self, grey: np.ndarray) -> bool:
        """Move the points, dropping those that got lost; False: too many did."""
        if not len(self._points):
            return True
        before = self._points[:, None]
        forth, found, _ = cv2.calcOpticalFlowPyrLK(
            self._grey,
            grey,
            before,
            np.empty_like(before),
            winSize=WINDOW,
            maxLevel=LEVELS,
            criteria=STEPS,
        )
        back, returned, _ = cv2.calcOpticalFlowPyrLK(
            grey,
            self._grey,
            forth,
            np.empty_like(before),
            winSize=WINDOW,
            maxLevel=LEVELS,
            criteria=STEPS,
        )
        error = np.abs(back - before).max(axis=(1, 2))
        height, width = grey.shape
        inside = (forth >= 0).all(axis=(1, 2)) & (forth < (width, height)).all(axis=(1, 2))
        kept = (found[:, 0] > 0) & (returned[:, 0] > 0) & (error < RETURN_ERROR) & inside
        self._ids, self._points = self._ids[kept], forth[kept, 0]
        return bool(kept.mean() > CUT_SHARE)

    def _back(self, grey: np.ndarray) -> np.ndarray | None:
        if min(grey.shape) < SMALLEST:
            return None
        back = self._dense.calc(grey, self._grey, None)  # type: ignore[call-overload]
        size = (grey.shape[1] // GRID, grey.shape[0] // GRID)
        return cv2.resize(back, size, interpolation=cv2.INTER_AREA) / np.float32(GRID)

    def _refill(self, grey: np.ndarray) -> None:
        """Take the best corner of every cell that holds no point."""
        strength = cv2.cornerMinEigenVal(grey, 3)
        rows, columns = grey.shape[0] // CELL, grey.shape[1] // CELL
        cells = strength[: rows * CELL, : columns * CELL]
        cells = cells.reshape(rows, CELL, columns, CELL).swapaxes(1, 2).reshape(-1, CELL * CELL)
        best = cells.argmax(axis=1)
        free = cells[np.arange(len(cells)), best] > FAINTEST
        held = np.minimum(self._points // CELL, (columns - 1, rows - 1)).astype(int)
        free[held[:, 1] * columns + held[:, 0]] = False
        cell, place = np.flatnonzero(free), best[free]
        x = (cell % columns) * CELL + place % CELL
        y = (cell // columns) * CELL + place // CELL
        self._points = np.vstack([self._points, np.stack([x, y], axis=1).astype(np.float32)])
        fresh = np.arange(self._next_id, self._next_id + len(cell))
        self._ids = np.concatenate([self._ids, fresh])
        self._next_id += len(cell)


def _reduced(image: np.ndarray, scale: float) -> np.ndarray:
    """Grey, ``scale`` times smaller: shrunk first, so that grey is made of few pixels."""
    size = (round(image.shape[1] / scale), round(image.shape[0] / scale))
    small = image if scale == 1 else shrink(image, *size)
    return cv2.cvtColor(small, cv2.COLOR_BGR2GRAY)
