"""What a run showed, for the page: from its summary and its trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from heimdall.bench.timeline import Timeline, read_timeline
from heimdall.vocabulary.enums import Lane

_KEPT = ("fps", "frame_interval_ms", "late_frames", "render_ms", "gap_utilization", "decision_us")
_OF_DNN = ("inferences", "latency_ms", "end_to_end_ms", "gpu", "cpu", "chunks", "fallback_ops")


def observed(summary: Mapping[str, Any], trace: Path) -> dict[str, Any]:
    """The figures of a run that rows of the page refer to; what it cannot tell is missing.

    Of its trace: ``overhead`` of chunks by DNN and of all (section 9.3), the part of the time that
    each DNN ``had_gpu``, mean ``utility`` (a fresh result's is 1), and ``moved_ms``, when a DNN
    first left for the CPU.
    """
    seconds = summary["seconds"]
    busy_ms = summary["gpu"]["busy_ms"]
    found = {
        **{key: summary[key] for key in _KEPT},
        "dnns": {
            name: {key: dnn[key] for key in _OF_DNN} | {"rate_hz": dnn["inferences"] / seconds}
            for name, dnn in summary["dnns"].items()
        },
        "gpu_busy": None if busy_ms is None else busy_ms / 1e3 / seconds,
        "cores": summary["cpu_core_s"] / seconds,
        "power_w": summary.get("power_w"),
    }
    return found | (_coordinated(read_timeline(trace)) if trace.exists() else {})


def _coordinated(timeline: Timeline) -> dict[str, Any]:
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
