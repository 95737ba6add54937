"""XRBench's scores (Kwon et al., MLSys '23): was each frame in time, was it there at all, and what
did it cost?

As its released code has them. Real time is nearly a step at the deadline; a frame that was dropped
counts twice, as one that gives nothing and by the quality of experience. Accuracy is left out: it
is 1 of networks that are run as they are, in that code as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from heimdall.runtime.telemetry.jobs import Outcome

SHARPNESS = 15.0  # of real time's step, a ms
MOST_MJ = 1500.0  # an inference that takes so much energy is worth nothing
_NS_PER_MS = 1e6
_FARTHEST = 700.0  # beyond it exp() overflows

Score = dict[str, Any]


def score(
    outcomes: Iterable[Outcome], inference_mj: Mapping[str, float] | None = None
) -> Score | None:
    """The score of requests that have an SLO; None where there is none.

    ``inference_mj``: by model the energy of an inference, in mJ, where it is known; else energy is
    None, and counts as if it were free. ``real_time`` (of what was finished), ``qoe`` and
    ``energy`` are from 0 to 1, ``overall`` to 100: means over models, with those of each.
    """
    asked: dict[str, list[Outcome]] = {}
    for each in outcomes:
        if each.slo_ns is not None:
            asked.setdefault(each.model, []).append(each)
    if not asked:
        return None
    models = {
        name: _of_model(each, None if inference_mj is None else inference_mj.get(name, 0.0))
        for name, each in sorted(asked.items())
    }
    found: Score = {key: _mean(models, key) for key in ("real_time", "energy", "qoe", "overall")}
    return {**found, "models": models}


def real_time(late_ns: float) -> float:
    """What an answer is worth that comes so long after its deadline (before it: less than 0)."""
    return 1 / (1 + math.exp(min(SHARPNESS * late_ns / _NS_PER_MS, _FARTHEST)))


def _of_model(outcomes: list[Outcome], mj: float | None) -> Score:
    """``mj``: what an inference takes; None: unknown."""
    in_time = [
        real_time(each.latency_ns - each.slo_ns)
        for each in outcomes
        if each.latency_ns is not None and each.slo_ns is not None
    ]
    worth = 1.0 if mj is None else max(0.0, (MOST_MJ - mj) / MOST_MJ)
    qoe = len(in_time) / len(outcomes)
    return {
        "real_time": round(sum(in_time) / len(in_time), 4) if in_time else None,
        "energy": None if mj is None else round(worth, 4),
        "qoe": round(qoe, 4),
        "overall": round(100 * sum(in_time) * worth / len(outcomes) * qoe, 3),
    }


def _mean(models: Mapping[str, Score], key: str) -> float | None:
    known = [each[key] for each in models.values() if each[key] is not None]
    return round(sum(known) / len(known), 4) if known else None
