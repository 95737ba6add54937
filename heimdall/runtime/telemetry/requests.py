"""The figures of requests: what became of each, as ``--json`` prints it by model.

A request is violated by a multiple k where it was dropped, or took longer than k times what its
model takes alone (SPLIT, section 5.2: alpha; Band, section 6.4: multiplier). Jitter is the standard
deviation of latencies (SPLIT, section 5.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.runtime.telemetry.figures import share, spread

MULTIPLES = (2, 4, 8, 20)
SLO = "slo"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request. ``finished_ns``: None where it was dropped, for a ``reason``; ``slo_ns``: None
    where it has no SLO."""

    model: str
    submitted_ns: int
    finished_ns: int | None
    slo_ns: int | None = None
    reason: str = ""

    @property
    def latency_ns(self) -> int | None:
        """From being submitted to its answer; None where there was none."""
        return None if self.finished_ns is None else self.finished_ns - self.submitted_ns

    def violates(self, most_ns: float) -> bool:
        """Whether it was dropped, or took longer."""
        return self.latency_ns is None or self.latency_ns > most_ns


def request_figures(
    outcomes: Iterable[Outcome], lone_ns: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """The figures of each model of ``lone_ns`` (what it takes alone), and of all that were asked
    for. Shares are of submitted requests, and None where there is none, as violations are of a
    model whose time alone, or SLO, nobody knows."""
    found: dict[str, list[Outcome]] = {name: [] for name in lone_ns}
    for outcome in outcomes:
        found.setdefault(outcome.model, []).append(outcome)
    return {name: _of_model(each, lone_ns.get(name)) for name, each in found.items()}


def violations(
    outcomes: Iterable[Outcome], lone_ns: Mapping[str, float]
) -> dict[str, float | None]:
    """By multiple of what models take alone, and by "slo", the share of requests of which it is
    known that violate it."""
    outcomes = list(outcomes)
    known = [each for each in outcomes if each.model in lone_ns]
    with_slo = [each for each in outcomes if each.slo_ns is not None]
    found = {
        str(k): share(sum(each.violates(k * lone_ns[each.model]) for each in known), len(known))
        for k in MULTIPLES
    }
    late = sum(each.violates(each.slo_ns) for each in with_slo if each.slo_ns is not None)
    return {**found, SLO: share(late, len(with_slo))}


def _of_model(outcomes: Sequence[Outcome], lone_ns: float | None) -> dict[str, Any]:
    latencies_ns = [ns for each in outcomes if (ns := each.latency_ns) is not None]
    known = {} if lone_ns is None else {each.model: lone_ns for each in outcomes}
    reasons = [each.reason for each in outcomes if each.finished_ns is None]
    return {
        "submitted": len(outcomes),
        "finished": len(latencies_ns),
        "dropped": len(reasons),
        "reasons": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
        "violations": violations(outcomes, known),
        "utility": _utility(outcomes),
        "jitter_ms": round(float(np.std(latencies_ns)) / 1e6, 3) if latencies_ns else None,
        "latency_ms": spread(latencies_ns),
        "lone_ms": None if lone_ns is None else round(lone_ns / 1e6, 3),
    }


def _utility(outcomes: Sequence[Outcome]) -> float | None:
    """What answers to requests with an SLO are worth on average: 1 at once, 0 at their SLO."""
    aged = [
        each.latency_ns / each.slo_ns
        for each in outcomes
        if each.latency_ns is not None and each.slo_ns is not None
    ]
    return round(1 - float(np.mean(np.square(aged))), 4) if aged else None


def throughput_hz(outcomes: Iterable[Outcome], seconds: float) -> float | None:
    """Finished requests a second, of all models; None for no time."""
    return share(sum(each.finished_ns is not None for each in outcomes), seconds)
