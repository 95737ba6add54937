"""The figures of requests: what became of each, as ``--json`` prints it by model.

A request is violated by a multiple k where it was dropped, or took longer than k times what its
model takes alone (SPLIT, section 5.2: alpha; Band, section 6.4: multiplier). Jitter is the standard
deviation of latencies (SPLIT, section 5.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.runtime.telemetry.figures import share, spread
from heimdall.vocabulary.events import Action, Drop, Finish, RunChunk
from heimdall.vocabulary.plans import DnnPlan

MULTIPLES = (2, 4, 8, 20)
SLO = "slo"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request. ``finished_ns``: None where it was dropped, for a ``reason``; ``slo_ns``: None
    where it has no SLO. Of a model with early exits, ``exit`` is the one that was taken, and
    ``accuracy`` that exit's over the whole network's, or 0 where it was dropped; ``preempted``: how
    often it had begun and somebody else had the processor first."""

    model: str
    submitted_ns: int
    finished_ns: int | None
    slo_ns: int | None = None
    reason: str = ""
    exit: str = ""
    accuracy: float | None = None
    preempted: int = 0

    @property
    def latency_ns(self) -> int | None:
        """From being submitted to its answer; None where there was none."""
        return None if self.finished_ns is None else self.finished_ns - self.submitted_ns

    def violates(self, most_ns: float) -> bool:
        """Whether it was dropped, or took longer."""
        return self.latency_ns is None or self.latency_ns > most_ns


class Progress:
    """What becomes of jobs beside their latency: which exits they take, and how often each is
    preempted: when it has begun, somebody else has its processor, and it is not done."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # by processor: the job that ran there
        self._preempted: dict[int, int] = {}

    def acted(self, action: Action) -> None:
        """An action of the coordinator; of one that ends a job, after ``of``."""
        if isinstance(action, RunChunk):
            before = self._last.get(action.processor, action.job)
            if before != action.job and before in self._preempted:
                self._preempted[before] += 1
            self._preempted.setdefault(action.job, 0)
            self._last[action.processor] = action.job

    def of(self, action: Finish | Drop, plan: DnnPlan) -> tuple[str, float | None, int]:
        """Exit, accuracy and preemptions of the job that the action ends."""
        preempted = self._preempted.pop(action.job, 0)
        exits = next((each.exits for each in reversed(plan.stages) if each.exits), ())
        if not exits:
            return "", None, preempted
        if isinstance(action, Drop):
            return "", 0.0, preempted
        own, whole = {each.name: each.accuracy for each in exits}, exits[-1].accuracy
        return action.exit, own[action.exit] / whole if whole else 0.0, preempted


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


def accuracy(outcomes: Iterable[Outcome]) -> float | None:
    """What is left of the whole networks' accuracy, on average: of a request that violates its SLO,
    nothing (Pantheon, section 5). None without early exits."""
    found = [
        0.0 if each.slo_ns is not None and each.violates(each.slo_ns) else each.accuracy
        for each in outcomes
        if each.accuracy is not None
    ]
    return round(float(np.mean(found)), 5) if found else None


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
        "accuracy": accuracy(outcomes),
        "exits": dict(sorted(Counter(each.exit for each in outcomes if each.exit).items())),
        "preempted": sum(each.preempted for each in outcomes),
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
