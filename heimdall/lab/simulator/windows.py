"""A run's figures by windows of some seconds, for machines that change while it lasts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from heimdall.runtime.telemetry.figures import Figures

WINDOW_NS = 10_000_000_000


class _Counts(NamedTuple):
    """How much had been counted then."""

    now_ns: int
    frames: int
    late: int
    dnns: dict[str, tuple[int, int]]  # inferences, deadline misses


class Windows:
    """Cuts what ``figures`` count, without forgetting any of it."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._ends: list[_Counts] = []

    def end(self, now_ns: int) -> None:
        """A window ends here, and the next one begins."""
        if not self._ends:
            none = dict.fromkeys(self._figures.dnns, (0, 0))
            self._ends.append(_Counts(self._figures.started_ns, 0, 0, none))
        self._ends.append(self._counts(now_ns))

    def _counts(self, now_ns: int) -> _Counts:
        figures = self._figures
        dnns = {
            name: (len(dnn.latencies_ns), dnn.deadline_misses) for name, dnn in figures.dnns.items()
        }
        return _Counts(now_ns, len(figures.presented_ns), figures.late_frames, dnns)

    def summary(self) -> dict[str, dict[str, Any]]:
        """By windows, named as "10-20 s": fps, the share of late frames, and for each DNN its mean
        latency, its rate, and the share of its inferences that missed their deadline."""
        return {self._name(*pair): self._window(*pair) for pair in pairwise(self._ends)}

    def _name(self, first: _Counts, last: _Counts) -> str:
        from_s, to_s = (round((each.now_ns - self._ends[0].now_ns) / 1e9) for each in (first, last))
        return f"{from_s}-{to_s} s"

    def _window(self, first: _Counts, last: _Counts) -> dict[str, Any]:
        seconds, frames = (last.now_ns - first.now_ns) / 1e9, last.frames - first.frames
        dnns = {}
        for name, dnn in self._figures.dnns.items():
            (before, missed_before), (now, missed) = first.dnns[name], last.dnns[name]
            latencies = np.asarray(dnn.latencies_ns[before:now]) / 1e6
            dnns[name] = {
                "latency_ms": round(float(latencies.mean()), 3) if now > before else None,
                "achieved_hz": round((now - before) / seconds, 3),
                "miss_rate": round((missed - missed_before) / max(now - before, 1), 4),
            }
        late = round((last.late - first.late) / max(frames, 1), 4)
        return {"fps": round(frames / seconds, 3), "late_rate": late, "dnns": dnns}
