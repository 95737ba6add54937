"""The cloth that furniture comes in before it is painted."""

from __future__ import annotations

import numpy as np


def weave(size: int = 256, seed: int = 3) -> np.ndarray:
    """A coarse teal weave, RGB uint8 (size, size, 3), seamless."""
    rng = np.random.default_rng(seed)
    threads = size // 6
    row, column = np.mgrid[0:size, 0:size] / size * threads
    over = (row.astype(int) + column.astype(int)) % 2 == 0
    round_warp = np.sin(np.pi * (column % 1)) ** 0.6
    round_weft = np.sin(np.pi * (row % 1)) ** 0.6
    light = np.where(over, round_warp, round_weft) * 0.34 + 0.72
    tone = rng.normal(0, 0.05, (2, threads))
    light += np.where(over, tone[0][column.astype(int)], tone[1][row.astype(int)])
    light += rng.normal(0, 0.02, (size, size))
    base = np.array([60, 104, 112]) * np.where(over, 1.0, 0.93)[..., None]
    return np.clip(base * light[..., None], 0, 255).astype(np.uint8)
