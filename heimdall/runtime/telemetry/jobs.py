"""The figures of jobs: what became of those of an app's network, or of the requests to a model.

A request is violated by a multiple k where it was dropped, or took longer than k times what its
model takes alone (SPLIT, section 5.2: alpha; Band, section 6.4: multiplier). Jitter is the standard
deviation of latencies (SPLIT, section 5.5).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.runtime.telemetry.spreads import share, spread
from heimdall.vocabulary.events import Action, Drop, Finish, RunChunk
from heimdall.vocabulary.plans import DnnPlan, Utility
from heimdall.vocabulary.processors import GPU, REMOTE

MULTIPLES = (2, 4, 8, 20)
SLO = "slo"
_NS = "q"  # times are kept for hours: 8 bytes each, a fifth of what a list of ints takes


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request. ``finished_ns``: None where it was dropped, for a ``reason``; ``slo_ns``: None
    where it has no SLO. Of a model with early exits, ``exit`` is the one that was taken, and
    ``accuracy`` that exit's over the whole network's, or 0 where it was dropped; ``preempted``: how
    often it had begun and another job had the processor first."""

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


class JobCounts:
    """What becomes of jobs beside their latency: which exits they take, and how often each is
    preempted: when it has begun, another job has its processor, and it is not done."""

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


@dataclass
class ModelFigures:
    """Counts and times (ns) of one model's jobs. An app's network is told of what ``finished``, and
    of results that are ``shown``; a model that clients ask for of what has ``ended``."""

    fallback_ops: int = 0
    whole_ns: float = 0  # the whole network alone (sum of stages); 0: unknown
    taken_ns: int | None = None  # when the newest result's frame was taken
    exit: str = ""  # the newest one
    stages: int = 1
    required_hz: float | None = None  # None: event-driven
    utility: Utility | None = None  # Eqs. 2 and 3, as declared

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what has been counted."""
        self.latencies_ns, self.end_to_end_ns = array(_NS), array(_NS)
        self.ages_ns = array(_NS)  # of what each frame shows
        self.gpu = self.cpu = self.remote = 0
        self.chunks = 0  # of all inferences on the GPU
        self.begun_anew = self.preempted = self.dropped = self.deadline_misses = 0
        self.reasons: Counter[str] = Counter()  # of requests that were dropped
        self.exits: Counter[str] = Counter()  # how often each early exit was taken
        self.with_slo = 0
        self._losses, self._accuracies = array("d"), array("d")  # of requests

    def finished(self, finish: Finish) -> None:
        """Count an inference."""
        self.deadline_misses += finish.missed
        self._answered(finish.latency_ns, finish.exit)
        if finish.processor == GPU:
            self.gpu += 1
            self.chunks += finish.chunks
        elif finish.processor == REMOTE:
            self.remote += 1
        else:
            self.cpu += 1

    def ended(self, request: Outcome) -> None:
        """Count a request."""
        latency_ns, slo_ns = request.latency_ns, request.slo_ns
        late = slo_ns is not None and (latency_ns is None or latency_ns > slo_ns)
        self.with_slo += slo_ns is not None
        self.deadline_misses += late
        self.preempted += request.preempted
        if request.accuracy is not None:
            self._accuracies.append(0.0 if late else request.accuracy)
        if latency_ns is None:
            self.dropped += 1
            self.reasons[request.reason] += 1
            return
        self._answered(latency_ns, request.exit)
        if slo_ns is not None:
            self._losses.append((latency_ns / slo_ns) ** 2)

    def _answered(self, latency_ns: int, exit: str) -> None:
        self.latencies_ns.append(latency_ns)
        self.exit = exit
        if exit:
            self.exits[exit] += 1

    def shown(self, taken_ns: int, ready_ns: int) -> None:
        """There is a new result, of a frame taken then."""
        self.end_to_end_ns.append(ready_ns - taken_ns)
        self.taken_ns = taken_ns

    @property
    def submitted(self) -> int:
        """Requests that were answered or dropped."""
        return len(self.latencies_ns) + self.dropped

    def over(self, most_ns: float) -> int:
        """Requests that were dropped, or took longer."""
        return self.dropped + sum(ns > most_ns for ns in self.latencies_ns)

    @property
    def accuracy(self) -> float | None:
        """What is left of the whole network's accuracy, on average: of a request that violates its
        SLO, nothing (Pantheon, section 5). None without early exits."""
        return round(float(np.mean(self._accuracies)), 5) if self._accuracies else None

    def summary(self, seconds: float = 0.0) -> dict[str, Any]:
        """An app's network over so many seconds (0: not counted)."""
        return {
            "inferences": len(self.latencies_ns),
            "achieved_hz": share(len(self.latencies_ns), seconds),
            "required_hz": self.required_hz,
            "latency_ms": spread(self.latencies_ns),
            "end_to_end_ms": spread(self.end_to_end_ns),
            "age_ms": spread(self.ages_ns),
            "begun_anew": self.begun_anew,
            "gpu": self.gpu,
            "cpu": self.cpu,
            **({"remote": self.remote} if self.remote else {}),
            **({"exits": dict(sorted(self.exits.items()))} if self.exits else {}),
            "chunks": round(self.chunks / self.gpu, 2) if self.gpu else 0,
            "fallback_ops": self.fallback_ops,
            "deadline_misses": self.deadline_misses,
            "miss_rate": share(self.deadline_misses, len(self.latencies_ns)),
            "utility": _mean_utility(_lost(self.latencies_ns, self.utility)),
            "dropped": self.dropped,
            "stages": self.stages,
        }

    def of_requests(self) -> dict[str, Any]:
        """A model that clients ask for."""
        return {
            "submitted": self.submitted,
            "finished": len(self.latencies_ns),
            "dropped": self.dropped,
            "reasons": dict(sorted(self.reasons.items())),
            "violations": _violations([self]),
            "utility": _mean_utility(self._losses),
            "jitter_ms": _jitter_ms(self.latencies_ns),
            "latency_ms": spread(self.latencies_ns),
            "lone_ms": round(self.whole_ns / 1e6, 3) if self.whole_ns else None,
            "accuracy": self.accuracy,
            "exits": dict(sorted(self.exits.items())),
            "preempted": self.preempted,
        }


def request_figures(
    outcomes: Iterable[Outcome], lone_ns: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """The figures of each model of ``lone_ns`` (what it takes alone), and of all that were asked
    for. Shares are of submitted requests, and None where there is none, as violations are of a
    model whose time alone, or SLO, is unknown."""
    return {name: each.of_requests() for name, each in _counted(outcomes, lone_ns).items()}


def violations(
    outcomes: Iterable[Outcome], lone_ns: Mapping[str, float]
) -> dict[str, float | None]:
    """By multiple of what models take alone, and by "slo", the share of requests of which it is
    known that violate it."""
    return _violations(_counted(outcomes, lone_ns).values())


def accuracy(outcomes: Iterable[Outcome]) -> float | None:
    """The accuracy of all requests; see ``ModelFigures.accuracy``."""
    found = ModelFigures()
    for each in outcomes:
        found.ended(each)
    return found.accuracy


def throughput_hz(outcomes: Iterable[Outcome], seconds: float) -> float | None:
    """Finished requests a second, of all models; None for no time."""
    return share(sum(each.finished_ns is not None for each in outcomes), seconds)


def _counted(outcomes: Iterable[Outcome], lone_ns: Mapping[str, float]) -> dict[str, ModelFigures]:
    found = {name: ModelFigures(whole_ns=ns) for name, ns in lone_ns.items()}
    for outcome in outcomes:
        found.setdefault(outcome.model, ModelFigures()).ended(outcome)
    return found


def _violations(found: Collection[ModelFigures]) -> dict[str, float | None]:
    known = [each for each in found if each.whole_ns]
    asked = sum(each.submitted for each in known)
    by_multiple = {
        str(k): share(sum(each.over(k * each.whole_ns) for each in known), asked) for k in MULTIPLES
    }
    late = sum(each.deadline_misses for each in found)
    return {**by_multiple, SLO: share(late, sum(each.with_slo for each in found))}


def _jitter_ms(latencies_ns: Sequence[int]) -> float | None:
    return round(float(np.std(latencies_ns)) / 1e6, 3) if len(latencies_ns) else None


def _lost(latencies_ns: Sequence[int], utility: Utility | None) -> Sequence[float]:
    """What each result has lost of its worth when it comes (Eqs. 2 and 3, content left out): 0 of
    a fresh one, 1 at the latency constraint; empty where it is unknown."""
    if utility is None or utility.l0 <= 0:
        return ()
    lost = (utility.beta * (np.asarray(latencies_ns) / 1e6) ** utility.gamma) ** 2
    return list(lost / utility.l0)


def _mean_utility(lost: Sequence[float]) -> float | None:
    """What results are worth on average, which have lost so much; None where there is none."""
    return round(float(1 - np.mean(lost)), 4) if len(lost) else None
