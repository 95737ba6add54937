"""The figures of a run that draws: its frames, and the summary that ``--json`` prints. Those of
each network are in ``jobs``.

Frame intervals are those between the frames that a user sees; a window's frame rate is its
intervals over their sum, windows being 1/3 s as in the paper (section 9.1).
"""

from __future__ import annotations

import contextlib
import time
from array import array
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import psutil

from heimdall.runtime.loop.frame_loop import FrameTimes
from heimdall.runtime.telemetry.jobs import ModelFigures
from heimdall.runtime.telemetry.spreads import percentiles, share
from heimdall.vocabulary.events import RunChunk, RunTogether
from heimdall.vocabulary.processors import CPU, GPU
from heimdall.vocabulary.reasons import SETTLED, UNASKED, kind

SCHEMA = 1
WINDOW_S = 1 / 3
LATE_NS = 1_000_000
_NS = "q"  # times are kept for hours: 8 bytes each, a fifth of what a list of ints takes
NO_MEMORY = {"at_10s": None, "peak": None, "end": None}  # in a simulation


class MemorySampler:
    """Resident memory of this process in MB, sampled once a second."""

    def __init__(self, start_ns: int) -> None:
        self._process = psutil.Process()
        self._start_ns = start_ns
        self._next_ns = start_ns
        self.at_10s: float | None = None
        self.peak = self._last_mb = 0.0

    def sample(self, now_ns: int) -> None:
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + 1_000_000_000
        used = self.now_mb()
        self.peak = max(self.peak, used)
        if self.at_10s is None and now_ns - self._start_ns >= 10_000_000_000:
            self.at_10s = used

    def now_mb(self) -> float:
        """What is used now; what was, where the process has no handle left to look."""
        with contextlib.suppress(OSError):
            self._last_mb = self._process.memory_info().rss / 1e6
        return self._last_mb

    def summary(self) -> dict[str, float | None]:
        end = self.now_mb()
        return {
            "at_10s": None if self.at_10s is None else round(self.at_10s, 1),
            "peak": round(max(self.peak, end), 1),
            "end": round(end, 1),
        }


class Figures:
    """Everything counted during a run, after warm-up.

    ``simulated``: times are those of a virtual clock, and this process is not what runs.
    """

    def __init__(
        self, fps_target: float, dnns: dict[str, ModelFigures], *, simulated: bool = False
    ) -> None:
        self.fps_target = fps_target
        self.lanes: dict[str, int] = {}  # how many chunks processors run at once: 1, if not here
        self.dnns = dnns
        self._simulated = simulated
        self._last_ns = self._longest_ns = 0  # of all frames: a restart forgets no stall
        self.recent_ms: deque[float] = deque(maxlen=150)  # for the overlay's graph
        self.restart(0 if simulated else time.perf_counter_ns())

    def restart(self, now_ns: int) -> None:
        """Forget the warm-up."""
        self.started_ns = now_ns
        self.presented_ns = array(_NS)
        self.drawn_ns = array(_NS)
        self.render_ns = array(_NS)
        self.picture_ns = array(_NS)
        self.decision_ns = array(_NS)
        self.late_frames = 0
        self.skipped_frames = 0
        self.chunk_ns: dict[str, int] = {GPU: 0, CPU: 0}  # by processor
        self.reasons: Counter[str] = Counter()  # why chunks ran
        self._cpu_s = time.process_time()
        self.memory = None if self._simulated else MemorySampler(now_ns)
        for dnn in self.dnns.values():
            dnn.restart()

    def frame(self, presented_ns: int, deadline_ns: int, drawn_ns: int, render_ns: int) -> None:
        """A frame is presented, late if that is over 1 ms after its deadline. The GPU had drawn
        it at ``drawn_ns``, in ``render_ns``."""
        if self._last_ns:
            self._longest_ns = max(self._longest_ns, presented_ns - self._last_ns)
        if self.presented_ns:
            self.recent_ms.append((presented_ns - self.presented_ns[-1]) / 1e6)
        self._last_ns = presented_ns
        self.presented_ns.append(presented_ns)
        self.drawn_ns.append(drawn_ns)
        self.render_ns.append(render_ns)
        self.late_frames += presented_ns > deadline_ns + LATE_NS
        if self.memory is not None:
            self.memory.sample(presented_ns)

    @property
    def frames(self) -> int:
        """How many were presented."""
        return len(self.presented_ns)

    def picture(self, age_ns: int) -> None:
        """The camera picture of the frame that has just been presented is so old."""
        self.picture_ns.append(age_ns)

    def ran(self, processor: str, elapsed_ns: int) -> None:
        """A processor has run a chunk."""
        self.chunk_ns[processor] = self.chunk_ns.get(processor, 0) + elapsed_ns

    def chose(self, action: RunChunk | RunTogether) -> None:
        """The coordinator has had a chunk of a DNN run."""
        self.reasons[kind(action.reason)] += 1

    def presented(self, times: FrameTimes) -> None:
        """Count a frame of a loop."""
        self.skipped_frames += times.skipped
        for dnn in self.dnns.values():
            if dnn.taken_ns is not None:
                dnn.ages_ns.append(times.presented_ns - dnn.taken_ns)
        self.frame(times.presented_ns, times.deadline_ns, times.drawn_ns, times.render_ns)

    def _processors(self, seconds: float) -> dict[str, dict[str, float | None]]:
        """How busy chunks and, on the GPU, drawing have kept each."""
        idle = dict.fromkeys((GPU, CPU, *self.lanes), 0)  # what never ran anything is there too
        busy_ns = idle | self.chunk_ns | {GPU: self.chunk_ns[GPU] + sum(self.render_ns)}
        return processor_figures(busy_ns, self.lanes, seconds)

    def recent_fps(self) -> float:
        """Frame rate over the last third of a second."""
        recent = list(self.recent_ms)[-max(1, round(self.fps_target * WINDOW_S)) :]
        return 1000.0 * len(recent) / sum(recent) if recent else 0.0

    def recent_picture_ms(self) -> float | None:
        """The median age of the pictures of the last second; None where there are none."""
        recent = self.picture_ns[-round(self.fps_target) :]
        return float(np.median(recent)) / 1e6 if recent else None

    def summary(
        self, lone_render_ns: int, gap_utilization: float | None, now_ns: int | None = None
    ) -> dict[str, Any]:
        """The figures part of the run summary, as of ``now_ns`` (None: now)."""
        seconds = ((time.perf_counter_ns() if now_ns is None else now_ns) - self.started_ns) / 1e9
        intervals = _intervals_ms(self.presented_ns)
        frames_ns, lone_frames_ns = sum(self.render_ns), len(self.render_ns) * lone_render_ns
        networks_ns = sum(dnn.gpu * dnn.whole_ns for dnn in self.dnns.values())
        return {
            "fps_target": self.fps_target,
            "frames": len(self.presented_ns),
            "seconds": round(seconds, 3),
            "fps": window_rates(intervals, self.fps_target),
            "frame_interval_ms": percentiles(intervals),
            "longest_interval_ms": round(self._longest_ns / 1e6, 3) or None,
            "draw_interval_ms": percentiles(_intervals_ms(self.drawn_ns)),
            "picture_age_ms": percentiles(np.asarray(self.picture_ns) / 1e6, maximum=False),
            "late_frames": self.late_frames,
            "late_rate": share(self.late_frames, len(self.presented_ns)),
            "skipped_frames": self.skipped_frames,
            "render_ms": percentiles(np.asarray(self.render_ns) / 1e6, maximum=False),
            "gpu": {
                "busy_ms": round((frames_ns + self.chunk_ns[GPU]) / 1e6, 1),
                "useful_ms": round((lone_frames_ns + networks_ns) / 1e6, 1),
                "frames_busy_ms": round(frames_ns / 1e6, 1),
                "frames_useful_ms": round(lone_frames_ns / 1e6, 1),
            },
            "cpu_core_s": round(time.process_time() - self._cpu_s, 3),
            "processors": self._processors(seconds),
            "gap_utilization": None if gap_utilization is None else round(gap_utilization, 4),
            "chosen": chosen(self.reasons),
            "decision_us": percentiles(np.asarray(self.decision_ns) / 1e3, maximum=False),
            "dnns": {name: dnn.summary(seconds) for name, dnn in self.dnns.items()},
            "requests": {},
            "throughput_hz": share(
                sum(len(dnn.latencies_ns) for dnn in self.dnns.values()), seconds
            ),
            "memory_mb": self.memory.summary() if self.memory is not None else NO_MEMORY,
            "start": None,  # see runtime/first_start
        }


def chosen(reasons: Counter[str]) -> dict[str, Any]:
    """Who decided that chunks ran: of those that the policy was asked for, the share that it
    preferred to others, and all reasons."""
    asked = sum(count for reason, count in reasons.items() if reason not in UNASKED)
    preferred = asked - sum(reasons[reason] for reason in SETTLED)
    return {
        "chunks": sum(reasons.values()),
        "by_policy": share(preferred, asked),
        "reasons": dict(reasons.most_common()),
    }


def processor_figures(
    busy_ns: Mapping[str, int], lanes: Mapping[str, int], seconds: float
) -> dict[str, dict[str, float | None]]:
    """For each processor the share of its time (of all its lanes) that it was busy, and how
    long."""
    return {
        name: {
            "busy": share(ns / 1e9, seconds * lanes.get(name, 1)),
            "busy_s": round(ns / 1e9, 6),
        }
        for name, ns in busy_ns.items()
    }


def _intervals_ms(times_ns: Sequence[int]) -> np.ndarray:
    return np.diff(np.asarray(times_ns, dtype=np.int64)) / 1e6


def window_rates(intervals_ms: np.ndarray, fps_target: float) -> dict[str, float | None]:
    """Mean frame rate, and the lowest and highest over windows of 1/3 s."""
    if not len(intervals_ms):
        return {"mean": None, "min": None, "max": None}
    # A window closes at the interval that brings it nearest to 1/3 s, so that jitter of a
    # microsecond does not add an eleventh frame.
    enough_ms = 1000 * WINDOW_S - 500 / fps_target
    rates = []
    count, total = 0, 0.0
    for interval in intervals_ms:
        count, total = count + 1, total + float(interval)
        if total >= enough_ms:
            rates.append(1000 * count / total)
            count, total = 0, 0.0
    mean = 1000 * len(intervals_ms) / float(intervals_ms.sum())
    rates = rates or [mean]
    return {"mean": round(mean, 3), "min": round(min(rates), 3), "max": round(max(rates), 3)}
