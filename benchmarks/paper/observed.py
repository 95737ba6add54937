"""What a run showed, for the page: from its summary and its trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import isnan
from statistics import fmean
from typing import Any

from heimdall.lab.bench.timeline import Timeline
from heimdall.vocabulary.enums import Lane

_KEPT = (
    "fps",
    "frame_interval_ms",
    "late_frames",
    "late_rate",
    "skipped_frames",
    "render_ms",
    "gap_utilization",
    "decision_us",
)
_OF_DNN = (
    "inferences",
    "achieved_hz",
    "required_hz",
    "latency_ms",
    "end_to_end_ms",
    "gpu",
    "cpu",
    "chunks",
    "fallback_ops",
    "miss_rate",
    "dropped",
)
EXCERPT_MS = 2500.0  # of utility and occupancy: as much as a reader can tell apart


def observed(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a run that rows of the page refer to; what it cannot tell is missing."""
    seconds = summary["seconds"]
    gpu = summary["gpu"]
    return {
        **{key: summary[key] for key in _KEPT},
        "dnns": {name: _of_dnn(dnn) for name, dnn in summary["dnns"].items()},
        "gpu_busy": None if gpu["busy_ms"] is None else gpu["busy_ms"] / 1e3 / seconds,
        "gpu_beyond": _beyond(gpu),
        "cores": summary["cpu_core_s"] / seconds,
        "power_w": summary.get("power_w"),
    }


def _of_dnn(dnn: Mapping[str, Any]) -> dict[str, Any]:
    count = dnn["inferences"]
    return {key: dnn[key] for key in _OF_DNN} | {"on_cpu": dnn["cpu"] / count if count else None}


def _beyond(gpu: Mapping[str, Any]) -> float | None:
    """The GPU's time beyond what the same work takes alone, as a part of that."""
    busy_ms, useful_ms = gpu["busy_ms"], gpu["useful_ms"]
    return busy_ms / useful_ms - 1 if busy_ms is not None and useful_ms else None


def in_trace(timeline: Timeline) -> dict[str, Any]:
    """Of a coordinated run: ``overhead`` of chunks by DNN and of all (section 9.3), the part of
    the time that each DNN ``had_gpu``, mean ``utility`` (a fresh result's is 1), and ``moved_ms``,
    when a DNN first left for the CPU. Of another, nothing."""
    if not timeline.utility:
        return {}
    had_ms: defaultdict[str, float] = defaultdict(float)
    for span in timeline.spans:
        if span.lane == Lane.GPU:
            had_ms[span.name] += span.ms
    end_ms = max(span.start_ms + span.ms for span in timeline.spans)
    profiled_ms = {name: had_ms[name] / (1 + over) for name, over in timeline.overhead.items()}
    all_ms = sum(had_ms[name] for name in profiled_ms)
    return {
        "overhead": timeline.overhead,
        "overhead_of_all": all_ms / sum(profiled_ms.values()) - 1 if profiled_ms else None,
        "had_gpu": {name: ms / end_ms for name, ms in had_ms.items()},
        "utility": {
            name: fmean(known)
            for name, points in timeline.utility.items()
            if (known := [value for _, value in points if not isnan(value)])  # in flight then
        },
        "moved_ms": _moved_ms(timeline),
    }


def _moved_ms(timeline: Timeline) -> dict[str, float]:
    """When each DNN first left for the CPU, since the start of the run."""
    moves: dict[str, float] = {}
    for span in timeline.spans:
        name, moved, _ = span.name.partition(" moves to cpu")
        if moved:
            moves.setdefault(name, span.start_ms)
    return moves


def excerpt(timeline: Timeline) -> dict[str, Any]:
    """The first seconds for a picture: ``utility`` as [ms, value or None] by DNN, and ``spans`` as
    [lane, name, start ms, ms]."""

    def early(ms: float) -> bool:
        return ms < EXCERPT_MS

    lanes = (Lane.GPU, Lane.CPU, Lane.RENDER)
    return {
        "utility": {
            name: [
                [round(ms, 1), None if isnan(u) else round(u, 3)] for ms, u in points if early(ms)
            ]
            for name, points in timeline.utility.items()
        },
        "spans": [
            [str(span.lane), span.name, round(span.start_ms, 2), round(span.ms, 2)]
            for span in timeline.spans
            if span.lane in lanes and early(span.start_ms)
        ],
    }
