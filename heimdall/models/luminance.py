"""Content variation: how much the picture changed between two inferences (paper, Eq. 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cv2
import numpy as np

from heimdall.vocabulary.enums import Luminance

GRID = (96, 54)  # columns, rows: one cell is 20 x 20 pixels of a 1080p frame
PIXELS = 1920 * 1080


def luminance_grid(image: np.ndarray) -> np.ndarray:
    """Mean luminance Y (0..255) of each cell of a BGR frame (h, w, 3): float32 (54, 96).

    Takes 0.3 to 0.7 ms at any frame size: a bilinear step to four times the grid, then cell means.
    """
    samples = cv2.resize(image, (4 * GRID[0], 4 * GRID[1]), interpolation=cv2.INTER_LINEAR)
    cells = cv2.resize(samples, GRID, interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(cells, cv2.COLOR_BGR2GRAY).astype(np.float32)


def luminance_plane(image: np.ndarray) -> np.ndarray:
    """Luminance Y of each pixel of a BGR frame (h, w, 3): uint8 (h, w), as Eq. 4 is written."""
    return cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)


MEASURES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    Luminance.CELLS: luminance_grid,
    Luminance.PIXELS: luminance_plane,
}


def luminance_difference(current: np.ndarray, previous: np.ndarray) -> float:
    """C of Eq. 4 from two grids, or from two planes: the sum of |Y - Y'| over the pixels of a
    1920x1080 frame.

    A cell stands for all its pixels, and so does a pixel of a frame of another size: the same
    change of scene gives the same value at every resolution (and so does alpha = 0.01). Of planes
    of two sizes (another source) the earlier one is scaled to the later.
    """
    if previous.shape != current.shape:
        previous = cv2.resize(previous, current.shape[::-1], interpolation=cv2.INTER_AREA)
    return cv2.norm(current, previous, cv2.NORM_L1) / current.size * PIXELS
