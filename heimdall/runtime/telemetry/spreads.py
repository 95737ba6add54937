"""Many values as the few that a summary has: shares, means and percentiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def percentiles(values: np.ndarray, maximum: bool = True) -> dict[str, float | None]:
    """p50, p99 and, unless told otherwise, the maximum."""
    names = ("p50", "p99", "max") if maximum else ("p50", "p99")
    if not len(values):
        return dict.fromkeys(names)
    found = np.percentile(values, [50, 99, 100][: len(names)])
    return {name: round(float(value), 3) for name, value in zip(names, found, strict=True)}


def share(part: float, whole: float) -> float | None:
    """How much of the whole the part is; None where there is no whole."""
    return round(part / whole, 4) if whole else None


def spread(values_ns: Sequence[int]) -> dict[str, float | None]:
    """Mean, p50, p99 and maximum of latencies, in ms."""
    values = np.asarray(values_ns) / 1e6
    mean = round(float(values.mean()), 3) if len(values) else None
    return {"mean": mean, **percentiles(values)}
