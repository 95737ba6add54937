"""How large a room is, as several looks say it together.

One look says little: a box is a few pixels off, bottles differ, an accelerometer is noisy. Many
looks from several sides say more, but never more than what each of them is off by in the same way.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

KEPT = 64
LEAST = 8  # looks
MAD = 1.4826  # times the median deviation is the standard one
SHOWS = 0.02  # a change of lengths that is told


@dataclass(frozen=True)
class Length:
    """``metres`` of the map's unit, and their relative standard deviation."""

    metres: float
    spread: float


class Lengths:
    """``add`` each look; ``length`` is what they say together, None while that is too little."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self.length: Length | None = None  # asked at every frame

    def add(self, look: Length) -> None:
        """One more."""
        self._looks.append((math.log(look.metres), look.spread))
        if len(self._looks) >= LEAST:
            self.length = self._together()

    def _together(self) -> Length:
        logs, spreads = np.array(self._looks).T
        weights = 1 / spreads**2
        order = np.argsort(logs)
        share = np.cumsum(weights[order]) / weights.sum()
        middle = float(logs[order][int(np.searchsorted(share, 0.5))])  # a few may be wrong
        noise = MAD * float(np.median(np.abs(logs - middle))) / math.sqrt(len(logs))
        return Length(math.exp(middle), math.hypot(noise, float(spreads.min())))
