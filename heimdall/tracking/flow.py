"""Sparse optical flow: points followed from frame to frame by pyramidal Lucas-Kanade.

All work is done by OpenCV on a reduced grey picture, off the GPU and without the interpreter
lock: ``python benchmarks/tracking.py`` says how long each part takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np

from heimdall.models.letterbox import shrink

WIDTH = 320  # of the reduced picture, or its longer side
CELL = 24  # reduced pixels: about one point a cell, so that points cover the picture
WINDOW = 9
LEVELS = 3  # halvings of the reduced picture on which the way of a point is sought first
STEPS = 5, 0.03  # of the search for a point: so many, or until they are as small, reduced pixels
RETURN_ERROR = 0.3  # reduced pixels: a point followed forth and back must come home
FAINTEST = 5e-5  # smallest eigenvalue of a corner worth following
REFILL_EVERY = 4  # frames between looks for new corners
SMALLEST = 16  # reduced pixels: the dense flow is not defined on less
GRID = 4  # reduced pixels: a cell of the dense flow
STRIDE = 6  # cells between its patches of 8: with 4 it takes twice as long, to no better masks
ITERATIONS = 8  # of its search: with 12 masks of fast hands are better by 0.005
OTHER_SCENE = 20  # mean difference of grey levels, beside that of brightness
CUT_SHARE = 0.2  # fewer survivors of the points than this: another scene


@dataclass(frozen=True, eq=False)
class Tracks:
    """Where points are in one frame. A point keeps its id as long as it is followed.

    ``ids`` (n,) ascending; ``points`` (n, 2) float32 pixels of the frame. ``cut``: the scene has
    changed, and nothing before this frame can be carried here. ``back`` (rows, columns, 2), where
    it was asked for, is a grid over the frame: each cell's way back to where it was in the frame
    before, in cells. ``grey`` is the frame in grey, reduced by ``scale``. ``gone``: the picture is
    quite another one, and nothing that was seen before can be in it.
    """

    sequence: int
    ids: np.ndarray
    points: np.ndarray
    cut: bool = False
    back: np.ndarray | None = None
    grey: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.uint8))
    scale: float = 1.0
    gone: bool = False


def common(ids: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the ids that both ascending arrays hold, in each."""
    theirs = np.searchsorted(others, ids)
    theirs[theirs == len(others)] = 0
    mine = np.flatnonzero(others[theirs] == ids) if len(others) else theirs[:0]
    return mine, theirs[mine]


class Flow:
    """Follows points through a sequence of pictures, BGR uint8 (h, w, 3)."""

    def __init__(self) -> None:
        self._large: np.ndarray | None = None  # the picture in grey, written to again
        self._grey = np.empty((0, 0), np.uint8)
        self._small: np.ndarray | None = None  # the frame on the dense flow's grid, if it was used
        self._shape: tuple[int, ...] = ()
        self._ids = np.empty(0, np.int64)
        self._points = np.empty((0, 2), np.float32)  # of the reduced picture
        self._dense = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)
        self._dense.setFinestScale(0)
        self._dense.setPatchStride(STRIDE)
        self._dense.setGradientDescentIterations(ITERATIONS)
        self._next_id = 0
        self._age = 0

    def advance(self, image: np.ndarray, sequence: int, *, dense: bool = False) -> Tracks:
        """The points in ``image``, the frame after the one given before, and the dense flow."""
        height, width = image.shape[:2]
        scale = max(1.0, max(height, width) / WIDTH)
        grey = self._reduced(image, scale)
        cut = image.shape != self._shape or not self._follow(grey)
        gone = cut and _differ(self._grey, grey)
        if cut:
            self._ids, self._points = self._ids[:0], self._points[:0]
        if cut or self._age % REFILL_EVERY == 0:
            self._refill(grey)
        if cut or not dense:
            self._small = None
        back = self._back(grey) if dense and not cut else None
        self._grey, self._shape = grey, image.shape
        self._age += 1
        # Pixel centres: reduced pixel 0 covers frame pixels 0 to scale - 1.
        points = (self._points + np.float32(0.5)) * np.float32(scale) - np.float32(0.5)
        return Tracks(sequence, self._ids, points, cut, back, grey, scale, gone)

    def _reduced(self, image: np.ndarray, scale: float) -> np.ndarray:
        """Grey, ``scale`` times smaller. Grey first, though it is more pixels: the picture is
        read once, in order, and every pixel counts, which halves what noise does to points."""
        self._large = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY, dst=self._large)
        height, width = (max(1, round(side / scale)) for side in image.shape[:2])
        return shrink(self._large, width, height)

    def _follow(self, grey: np.ndarray) -> bool:
        """Move the points, dropping those that got lost; False: too many did."""
        if not len(self._points):
            return True
        before = self._points
        forth, found = followed(self._grey, grey, before, None, LEVELS)
        # The way back begins at its end: one that is not there leads away from it again.
        back, returned = followed(grey, self._grey, forth, before.copy(), 0)
        error = np.abs(back - before).max(axis=1)
        inside = ((forth >= 0) & (forth < grey.shape[::-1])).all(axis=1)
        kept = found & returned & inside & (error < RETURN_ERROR)
        self._ids, self._points = self._ids[kept], forth[kept]
        return bool(kept.mean() > CUT_SHARE)

    def _back(self, grey: np.ndarray) -> np.ndarray | None:
        if min(grey.shape) < SMALLEST * GRID:
            return None
        before = self._small if self._small is not None else _cells(self._grey)
        self._small = _cells(grey)
        return self._dense.calc(self._small, before, None)  # type: ignore[call-overload]

    def _refill(self, grey: np.ndarray) -> None:
        """Take the best corner of every cell that holds no point; of several, keep the oldest."""
        # Half the size takes a tenth of the time, and a corner need not be exact.
        half = cv2.resize(grey, (max(1, grey.shape[1] // 2), max(1, grey.shape[0] // 2)))
        strength = cv2.cornerMinEigenVal(half, 3)
        side = CELL // 2
        rows, columns = half.shape[0] // side, half.shape[1] // side
        cells = strength[: rows * side, : columns * side]
        cells = cells.reshape(rows, side, columns, side).swapaxes(1, 2).reshape(-1, side * side)
        best = cells.argmax(axis=1)
        free = cells[np.arange(len(cells)), best] > FAINTEST
        held = np.minimum(self._points // CELL, (columns - 1, rows - 1)).astype(int)
        held, first = np.unique(held[:, 1] * columns + held[:, 0], return_index=True)
        first.sort()
        self._ids, self._points = self._ids[first], self._points[first]
        free[held] = False
        cell, place = np.flatnonzero(free), best[free]
        x = (cell % columns) * side + place % side
        y = (cell // columns) * side + place // side
        corners = 2 * np.stack([x, y], axis=1).astype(np.float32) + np.float32(0.5)
        self._points = np.vstack([self._points, corners])
        fresh = np.arange(self._next_id, self._next_id + len(cell))
        self._ids = np.concatenate([self._ids, fresh])
        self._next_id += len(cell)


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two reduced pictures show something else, however bright."""
    if not one.size:
        return False
    tiny = (cv2.resize(each, (16, 16), interpolation=cv2.INTER_AREA) for each in (one, other))
    first, then = (each - each.mean() for each in tiny)
    return bool(np.abs(first - then).mean() > OTHER_SCENE)


def _cells(grey: np.ndarray) -> np.ndarray:
    """A reduced picture on the grid of the dense flow."""
    size = (grey.shape[1] // GRID, grey.shape[0] // GRID)
    return cv2.resize(grey, size, interpolation=cv2.INTER_AREA)


def followed(
    start: np.ndarray,
    end: np.ndarray,
    points: np.ndarray,
    guess: np.ndarray | None,
    levels: int,
    window: int = WINDOW,
    steps: tuple[int, float] = STEPS,
) -> tuple[np.ndarray, np.ndarray]:
    """Where ``points`` (n, 2) of picture ``start`` are in ``end``, and whether they were found.
    ``guess``, where they probably are, is written to; all points are float32."""
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        start,
        end,
        points,
        guess,  # type: ignore[arg-type]
        winSize=(window, window),
        maxLevel=levels,
        criteria=(cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, *steps),
        flags=0 if guess is None else cv2.OPTFLOW_USE_INITIAL_FLOW,
    )
    return there, found[:, 0] > 0
