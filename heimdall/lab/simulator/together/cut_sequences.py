"""Cuts of a combined block by a policy that says how likely each ending is (TOP, section V-C)."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from heimdall.lab.simulator.together.concurrent_stages import (
    Combined,
    ConcurrentStage,
    Ending,
    Left,
)

CUTS = 8  # of which the best is kept

Likely = Callable[[Left, list[Ending]], np.ndarray]  # of each ending of what is left, of 1


class CutSequence(NamedTuple):
    """A cut. ``taken``: what was left, and the number of the ending that was chosen there."""

    ns: float
    taken: list[tuple[Left, int]]


class Ways:
    """Cuts a combined block, and asks the policy once about each state. ``met``: what was left on
    the way, with its endings and how likely they are, summed up."""

    def __init__(self, combined: Combined, likely: Likely) -> None:
        self._combined, self._likely = combined, likely
        self.met: dict[Left, tuple[list[Ending], list[float]]] = {}

    def cut(self, draw: random.Random | None = None) -> CutSequence:
        """By chance, or (None) by the likeliest ending each time."""
        left, ns, taken = self._combined.whole, 0.0, list[tuple[Left, int]]()
        while any(left):
            if left not in self.met:
                endings = self._combined.endings(left)
                self.met[left] = endings, list(accumulate(self._likely(left, endings).tolist()))
            endings, summed = self.met[left]
            if draw is None:
                index = int(np.argmax(np.diff(summed, prepend=0.0)))
            else:
                (index,) = draw.choices(range(len(endings)), cum_weights=summed)
            taken.append((left, index))
            ns += endings[index].ns
            left = self._combined.after(left, endings[index])
        return CutSequence(ns, taken)

    def stages(self, way: CutSequence) -> list[ConcurrentStage]:
        """The stages of a cut, in the order in which they run."""
        return [self.met[left][0][index].stage() for left, index in reversed(way.taken)]


def best_of(
    combined: Combined, likely: Likely, cuts: int = CUTS
) -> tuple[list[ConcurrentStage], float]:
    """(Stages, what they take in ns) of the best of some cuts: the likeliest, and others by chance,
    always the same."""
    ways, draw = Ways(combined, likely), random.Random(0)
    found = [ways.cut(), *(ways.cut(draw) for _ in range(cuts - 1))]
    best = min(found, key=lambda way: way.ns)
    return ways.stages(best), best.ns
