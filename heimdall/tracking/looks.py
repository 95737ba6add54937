"""What things look like: enough to tell two apart that have crossed."""

from __future__ import annotations

import cv2
import numpy as np

CELLS = (3, 6)  # colours across and down a box
UNKNOWN = 0.12  # how much two differ on average of which one was never seen
INNER = 0.2  # of a box's sides: so much at its edges is mostly background


def looks(image: np.ndarray | None, boxes: np.ndarray) -> np.ndarray:
    """The colours (n, 54), each 0..1, of the middle of ``boxes`` (n, 4) in ``image``, BGR uint8.
    Of what lies outside of the picture they are NaN."""
    found = np.full((len(boxes), CELLS[0] * CELLS[1] * 3), np.nan, np.float32)
    if image is None:
        return found
    height, width = image.shape[:2]
    margin = INNER * (boxes[:, 2:] - boxes[:, :2])
    low = np.clip(boxes[:, :2] + margin, 0, (width, height)).astype(int)
    high = np.clip(np.ceil(boxes[:, 2:] - margin), 0, (width, height)).astype(int)
    for row, ((left, top), (right, bottom)) in enumerate(zip(low, high, strict=True)):
        if right > left and bottom > top:
            piece = cv2.resize(image[top:bottom, left:right], CELLS, interpolation=cv2.INTER_AREA)
            found[row] = piece.ravel() / np.float32(255)
    return found


def unlike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(n, m): how much each of ``one`` (n, 54) differs from each of ``other`` (m, 54): 0 to 1, and
    ``UNKNOWN`` where one is."""
    gap = np.abs(one[:, None] - other[None]).mean(axis=2)
    return np.nan_to_num(gap, nan=UNKNOWN)
