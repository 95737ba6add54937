"""How large a room is, by things of known height that a detector sees standing in it.

One look says little: a box is a few pixels off, and bottles differ. Many looks at several things
from several sides say more, but never more than how much such things differ.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Camera

Box = tuple[float, float, float, float]  # left, top, right, bottom, pixels
KEPT = 64
LEAST = 8  # looks
MAD = 1.4826  # times the median deviation is the standard one
SHOWS = 0.02  # a change of lengths that is told


@dataclass(frozen=True)
class Length:
    """``metres`` of the map's unit, and their relative standard deviation."""

    metres: float
    spread: float


class Things:
    """``add`` each look; ``length`` is what they say together, None while that is too little."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def add(self, metres: float, spread: float) -> None:
        """A look by which the map's unit has so many metres, at a kind of things that differ by
        ``spread``, a relative standard deviation."""
        self._looks.append((math.log(metres), spread))

    @property
    def length(self) -> Length | None:
        if len(self._looks) < LEAST:
            return None
        logs, spreads = np.array(self._looks).T
        weights = 1 / spreads**2
        order = np.argsort(logs)
        share = np.cumsum(weights[order]) / weights.sum()
        middle = float(logs[order][int(np.searchsorted(share, 0.5))])  # a few may be wrong
        noise = MAD * float(np.median(np.abs(logs - middle))) / math.sqrt(len(logs))
        return Length(math.exp(middle), math.hypot(noise, float(spreads.min())))


def height_of(box: Box, camera: Camera, foot: np.ndarray) -> float:
    """How tall something upright is, in the world's units, that stands at ``foot`` (3,) and fills
    ``box`` (left, top, right, bottom) in the picture of a ``camera`` with a pose; z is up."""
    assert camera.pose is not None
    left, top, right, _ = box
    _, slope, _ = camera.rays(np.array([[(left + right) / 2, top]]))[0]
    there, up = camera.pose.to_camera(foot), camera.pose.rotation[:, 2]
    down = float(up[1] - slope * up[2])
    return float(slope * there[2] - there[1]) / down if down else 0.0
