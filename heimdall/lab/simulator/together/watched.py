"""What a GPU that runs operators together did: how full it was, and how unequal queues became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from heimdall.lab.policies.grouped import variance
from heimdall.lab.simulator.together.device import TogetherDevice
from heimdall.vocabulary.events import (
    Action,
    Event,
    Finish,
    InferenceRequested,
    RunChunk,
    RunTogether,
)

_SAMPLE_NS = 50_000_000


class Watched:
    """Hears every step of a run. ``references``: by model, its network. ``waiting``: by model, how
    many requests have not begun; ``asked`` and ``finished``: how many have come, and were answered;
    ``filled_ns``: occupancy x time of what was begun."""

    def __init__(self, device: TogetherDevice, references: Mapping[str, str]) -> None:
        self._device, self._references = device, references
        self.waiting = dict.fromkeys(references, 0)
        self.asked, self.finished = dict(self.waiting), dict(self.waiting)
        self.now_ns, self.filled_ns = 0, 0.0
        self._latency_ms = dict.fromkeys(references, 0.0)
        self.variances: list[float] = []
        self._began_ns: dict[int, int] = {}
        self._sample_ns = 0

    def __call__(self, now_ns: int, event: Event | None, actions: Sequence[Action]) -> None:
        self.now_ns = now_ns
        while now_ns >= self._sample_ns:
            self.variances.append(variance(list(self.waiting.values())))
            self._sample_ns += _SAMPLE_NS
        if isinstance(event, InferenceRequested):
            self.waiting[event.dnn] += 1
            self.asked[event.dnn] += 1
        for action in actions:
            if isinstance(action, RunChunk):
                ops = range(action.start_op, action.end_op)
                filled_ns = self._device.times(self._references[action.dnn]).filled_ns
                self.filled_ns += sum(filled_ns[op] for op in ops)
                self._began(action.dnn, action.job)
            elif isinstance(action, Finish):
                self.finished[action.dnn] += 1
                latency_ms = (now_ns - self._began_ns[action.job]) / 1e6
                self._latency_ms[action.dnn] += 0.2 * (latency_ms - self._latency_ms[action.dnn])
            elif isinstance(action, RunTogether):
                self.filled_ns += self._device.took(action, self._references).filled_ns
                for group in (group for groups in action.stages for group in groups):
                    self._began(group.dnn, group.job)

    def latency_ms(self, model: str) -> float:
        """How long its last requests took from when they began, on average."""
        return self._latency_ms[model]

    def figures(self, seconds: float) -> dict[str, Any]:
        """Occupancy, from 0 to 1, and of the variance of queue lengths its mean, its most, and what
        it was in the end."""
        return {
            "occupancy": round(self.filled_ns / (seconds * 1e9), 4),
            "queue_variance": {
                "mean": round(fmean(self.variances), 1),
                "most": round(max(self.variances), 1),
                "last": round(self.variances[-1], 1),
            },
        }

    def _began(self, dnn: str, job: int) -> None:
        if job not in self._began_ns:
            self._began_ns[job] = self.now_ns
            self.waiting[dnn] -= 1
