"""What a plane finder is given, looked at first: points of a map, and directions."""

from __future__ import annotations

import numpy as np

from heimdall.tracking.slam.flat import TINY


def check(points: np.ndarray, ids: np.ndarray, spread: np.ndarray, seen_from: np.ndarray) -> None:
    """Raises ValueError for arrays that do not fit together, or are not finite."""
    count = len(points)
    if points.shape != (count, 3) or seen_from.shape != (count, 3):
        raise ValueError(f"points {points.shape}, seen from {seen_from.shape}: both must be (n, 3)")
    if ids.shape != (count,) or spread.shape != (count,):
        raise ValueError(f"ids {ids.shape}, spread {spread.shape}: both must be ({count},)")
    for name, each in (("points", points), ("spread", spread), ("seen_from", seen_from)):
        if not np.isfinite(each).all():
            bad = np.unique(ids[np.argwhere(~np.isfinite(each))[:, 0]])[:5].tolist()
            raise ValueError(f"{name} of ids {bad} are not finite: leave such points out")


def direction(name: str, given: np.ndarray) -> np.ndarray:
    """A direction (3,) that was given, of length 1. Raises ValueError for what is none."""
    length = float(np.linalg.norm(given))
    if np.shape(given) != (3,) or not np.isfinite(length) or length < TINY:
        raise ValueError(f"{name} {given}: give a direction, three finite numbers, not all 0")
    return np.asarray(given / length)
