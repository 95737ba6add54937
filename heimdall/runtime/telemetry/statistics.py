"""What several runs say together: means with the interval that holds the true mean, and extremes.

Runs of one kind differ by chance: a simulated one by its seed, a live one by what else its machine
did. The interval is Student's, which holds for the few runs that there are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from heimdall.errors import ArgumentError

LEVEL = 0.95
_DIGITS = 6
_NO_FIGURES = ("schema", "seed")


@dataclass(frozen=True)
class Interval:
    """The mean of ``n`` runs, where the true mean lies (``low`` to ``high``; both None for a
    single run, of which nothing can be said), and the ``least`` and ``most`` of the runs."""

    mean: float
    low: float | None
    high: float | None
    least: float
    most: float
    n: int

    @property
    def half(self) -> float | None:
        """Half the interval's width: mean +- half."""
        return None if self.high is None else self.high - self.mean


def interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean of values with the interval that holds the true one in ``level`` of all cases.

    Raises ArgumentError for no values, one that is not finite, and a level not within 0 and 1.
    """
    _check(values)
    if not 0 < level < 1:
        raise ArgumentError("must be between 0 and 1", argument="level", value=level)
    mean, count = statistics.fmean(values), len(values)
    low = high = None
    if count > 1:
        half = _student(level, count - 1) * statistics.stdev(values) / math.sqrt(count)
        low, high = mean - half, mean + half
    return Interval(mean, low, high, min(values), max(values), count)


def quantile(values: Sequence[float], q: float) -> float:
    """The value that a share ``q`` of all is below; between two of them in proportion.

    Raises ArgumentError for no values, one that is not finite, and ``q`` not within 0 to 1.
    """
    _check(values)
    if not 0 <= q <= 1:
        raise ArgumentError("must be from 0 to 1", argument="q", value=q)
    return float(np.quantile(values, q))


def over_runs(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For every number of run summaries, at its place: what ``Interval`` has, as a dict.

    A number that some runs lack (a DNN that never ran has no latency) is that of the others, as
    its ``n`` says. Left out is what no run has as a number, lists, ``schema`` and ``seed``.
    """
    found: dict[str, Any] = {}
    for key in dict.fromkeys(key for summary in summaries for key in summary):
        if key in _NO_FIGURES:
            continue
        values = [summary[key] for summary in summaries if key in summary]
        if tables := [value for value in values if isinstance(value, Mapping)]:
            if inner := over_runs(tables):
                found[key] = inner
        elif numbers := [value for value in values if _is_number(value)]:
            found[key] = as_dict(interval(numbers))
    return found


def as_dict(found: Interval) -> dict[str, float | None]:
    """An interval as JSON has it."""
    return {
        name: round(value, _DIGITS) if isinstance(value, float) else value
        for name, value in asdict(found).items()
    }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check(values: Sequence[float]) -> None:
    if not len(values):
        raise ArgumentError("there is none", argument="values", value="()")
    for value in values:
        if not math.isfinite(value):
            raise ArgumentError("must be finite", argument="value", value=value)


@lru_cache
def _student(level: float, freedom: int) -> float:
    """The t that a Student-distributed value stays within, on both sides, in ``level`` of all
    cases: by bisection."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < level:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """The probability of a value within -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
