"""Symmetric blocks of 3 x 3 for many points at once, by their components: Cholesky's factors.

A block is six arrays, row by row: those of (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2).
"""

from __future__ import annotations

import numpy as np

PAIRS = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
FLOOR = 1e-10  # of a block's trace: what it has at least in each direction


def factored(blocks: np.ndarray, damping: float | np.ndarray) -> np.ndarray:
    """L with L L' = blocks (6, ...), with so much more of their diagonals; its own diagonal is
    inverted. A block of zeros counts as 1."""
    more = 1 + damping
    trace = blocks[0] + blocks[2] + blocks[5]
    floor = np.where(trace > 0, FLOOR * trace, 1.0)
    lower = np.empty_like(blocks)
    lower[0] = 1 / np.sqrt(blocks[0] * more + floor)
    lower[1] = blocks[1] * lower[0]
    lower[3] = blocks[3] * lower[0]
    left = blocks[2] * more + floor - lower[1] ** 2
    lower[2] = 1 / np.sqrt(np.maximum(left, floor))
    lower[4] = (blocks[4] - lower[3] * lower[1]) * lower[2]
    left = blocks[5] * more + floor - lower[3] ** 2 - lower[4] ** 2
    lower[5] = 1 / np.sqrt(np.maximum(left, floor))
    return lower


def divided(rows: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """x with L x = rows (3, ...)."""
    found = np.empty(np.broadcast_shapes(rows.shape, lower[:3].shape))
    found[0] = rows[0] * lower[0]
    found[1] = (rows[1] - lower[1] * found[0]) * lower[2]
    found[2] = (rows[2] - lower[3] * found[0] - lower[4] * found[1]) * lower[5]
    return found


def divided_back(rows: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """x with L' x = rows (3, ...)."""
    found = np.empty_like(rows)
    found[2] = rows[2] * lower[5]
    found[1] = (rows[1] - lower[4] * found[2]) * lower[2]
    found[0] = (rows[0] - lower[1] * found[1] - lower[3] * found[2]) * lower[0]
    return found
