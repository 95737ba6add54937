"""How long the lens is, by the map alone (self-calibration; Hartley and Zisserman, 2004, chapter
19): with a wrong focal length no map explains what keyframes saw as well as with the right one.

It is asked early: later, what a wrong lens does not explain has been dropped from the map, which is
bent to fit it.
"""

from __future__ import annotations

import math

import numpy as np

from heimdall.tracking.slam.adjust import Adjusted, adjust
from heimdall.tracking.slam.lens import ALIKE
from heimdall.tracking.slam.model import Map

ASKED = (7, 8, 10, 13, 17, 24, 32)  # keyframes that there are then
MOST = 17  # keyframes that are looked at
LEAST_LOOKS, LEAST_POINTS = 3, 100  # at a point; points that have those
TRIED = tuple(math.log(each) for each in (0.7, 0.84, 1.0, 1.19, 1.41))
STEP = 0.06  # around the best of those
SURE = 2.8  # standard deviations
LEAST = 0.03  # a change that is worth it
STEPS = 12


class Looks:
    """What the newest keyframes of a map saw of its points."""

    def __init__(self, known: Map, noise_px: float) -> None:
        newest = sorted(known.keyframes)[-MOST:]
        ids = np.unique(np.concatenate([known.keyframes[each].ids for each in newest]))
        ids = ids[known.points.known(ids)]
        numbers, which, rays = known.observed(ids, newest)
        often = np.bincount(which, minlength=len(ids)) >= LEAST_LOOKS
        kept = often[which]
        self.ids, self._rays = ids[often], rays[kept]
        self._which = (np.cumsum(often) - 1)[which[kept]]
        self.numbers, self._cameras = np.unique(numbers[kept], return_inverse=True)
        if len(self.numbers):
            self._turned, self._moved = known.poses(self.numbers)
        self._points = known.points.position[self.ids]
        self._sigma = noise_px / known.keyframes[newest[0]].picture.lens.fx
        self._fixed = np.arange(len(self.numbers)) == 0
        self._costs: dict[float, float] = {}

    def adjusted(self, log: float, steps: int = STEPS) -> Adjusted:
        """The map by a lens whose focal length's logarithm is so much more."""
        times = math.exp(log)
        return adjust(
            self._turned, self._moved, self._points, self._cameras, self._which,
            self._rays / times, self._fixed, sigma=self._sigma / times, steps=steps,
        )  # fmt: skip

    def cost(self, log: float) -> float:
        """How badly it is explained, in squared standard deviations of looks that err alone."""
        if log not in self._costs:
            self._costs[log] = ALIKE * self.adjusted(log).after
        return self._costs[log]


def longer(looks: Looks) -> float:
    """How many times longer the lens is than it is taken to be; 1 while that does not show."""
    if len(looks.ids) < LEAST_POINTS:
        return 1.0
    best = min(TRIED, key=looks.cost)
    low, high = best - STEP, best + STEP
    a, b, c = looks.cost(low), looks.cost(best), looks.cost(high)
    bent = a - 2 * b + c
    if bent > 0:  # the lowest point of a parabola
        best = float(np.clip(best + STEP * (a - c) / (2 * bent), low - STEP, high + STEP))
    gained = looks.cost(0.0) - looks.cost(best)
    if abs(best) < LEAST or gained < SURE**2:
        return 1.0
    return math.exp(best)
