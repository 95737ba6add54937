"""Every app for long, while everything fails now and then: what grows, and what is late."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import app_names
from heimdall.app.options import check_number
from heimdall.lab.faults.chance import ALL
from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.judge import figures
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.running import run_trial
from heimdall.lab.faults.trial import Outcome, Trial

SCHEMA = 1
MOST_MB_PER_MIN = 0.5
EVERY_S = 1.0  # a sample
SETTLED = 0.25  # of the samples, the first, until caches and pools have what they need
_SAID = ("fps", "p99_ms", "longest_ms", "worst_window_fps", "ended_in_s", "left", "status")
_STRETCHES = 4  # of what is left: the first and the last are compared


@dataclass
class Samples:
    """What a process had, second by second: resident memory in MB, threads, open handles."""

    s: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)

    def take(self, process: psutil.Process, at_s: float) -> None:
        """One sample. Raises psutil.Error once the process is gone."""
        handles = process.num_handles() if psutil.WINDOWS else process.num_fds()
        self.memory_mb.append(round(process.memory_info().rss / 1e6, 2))
        self.threads.append(process.num_threads())
        self.handles.append(handles)
        self.s.append(round(at_s, 2))


def soak(request: Request, minutes: float, progress: Progress = no_progress) -> dict[str, Any]:
    """What ``heimdall soak --json`` prints: each bundled app in turn, for its share of the time.
    ``request``: how; its app and seconds do not count. Interrupted: of the apps that have run."""
    check_number("minutes", minutes, above=0)
    names, found, interrupted = app_names(), [], False
    seconds = max(60 * minutes / len(names), 3.0)
    try:
        for name in names:
            progress(name, 0, 1)
            found.append(soak_app(replace(request, app=name, seconds=seconds)))
            progress(name, 1, 1)
    except KeyboardInterrupt:
        interrupted = True
    return {"schema": SCHEMA, "minutes": minutes, "apps": found, "interrupted": interrupted}


def soak_app(request: Request) -> dict[str, Any]:
    """One app."""
    samples = Samples()
    fault = replace(ALL, beside=_sampling(samples))
    with tempfile.TemporaryDirectory(prefix="heimdall-soak-") as folder:
        outcome = run_trial(fault, Trial(request, Path(folder), always=True))
    return soaked(request, fault, outcome, samples)


def soaked(request: Request, fault: Fault, outcome: Outcome, samples: Samples) -> dict[str, Any]:
    """The figures of one app, and whether they are within bounds."""
    slope = slope_per_minute(samples.s, samples.memory_mb)
    threads, handles = gained(samples.threads), gained(samples.handles)
    summary, found = outcome.summary or {}, figures(fault, outcome)
    why = [] if outcome.summary else [f"it ended without a summary, with status {outcome.status}"]
    why += [] if slope is not None else ["it ran too short for a slope"]
    if slope is not None and slope >= MOST_MB_PER_MIN:
        why.append(f"memory grows by {slope:.2f} MB a minute")
    why += [f"{threads} threads gained"] if threads > 0 else []
    why += [f"{handles} handles gained"] if handles > 0 else []
    why += [f"left: {', '.join(sorted(outcome.left))}"] if outcome.left else []
    return {
        "app": request.app,
        "seconds": round(request.seconds, 1),
        **{name: found[name] for name in _SAID},
        "late_frames": summary.get("late_frames"),
        "injected": len(outcome.seen.acted),
        "errors": summary.get("errors", []),
        "memory_mb_per_min": None if slope is None else round(slope, 3),
        "threads_gained": threads,
        "handles_gained": handles,
        "samples": vars(samples),
        "frames": by_second(outcome.seen.frames),
        "passed": not why,
        "why": why,
    }


def slope_per_minute(seconds: Sequence[float], values: Sequence[float]) -> float | None:
    """How much a value grows a minute once it has settled: the median of the slopes between all
    pairs of samples (Theil and Sen), which a few jumps do not move. None of fewer than three."""
    start = round(SETTLED * len(seconds))
    x, y = np.asarray(seconds[start:], float), np.asarray(values[start:], float)
    if len(x) < 3:
        return None
    first, second = np.triu_indices(len(x), 1)
    return float(60 * np.median((y[second] - y[first]) / (x[second] - x[first])))


def gained(counts: Sequence[int]) -> int:
    """How many more there are in the last stretch than in the first, once it has settled: by the
    least of each, for what comes and goes is not gained."""
    settled = counts[round(SETTLED * len(counts)) :]
    part = len(settled) // _STRETCHES
    return min(settled[-part:]) - min(settled[:part]) if part else 0


def by_second(frames: Sequence[int]) -> dict[str, list[float]]:
    """The longest interval between frames in each second, in ms."""
    if len(frames) < 2:
        return {"s": [], "longest_ms": []}
    times = (np.asarray(frames[1:]) - frames[0]) / 1e9
    intervals = np.diff(frames) / 1e6
    seconds = times.astype(int)
    longest = [round(float(intervals[seconds == each].max()), 2) for each in np.unique(seconds)]
    return {"s": np.unique(seconds).astype(float).tolist(), "longest_ms": longest}


def _sampling(samples: Samples) -> Callable[[Trial], contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def beside(trial: Trial) -> Iterator[None]:
        process, over = psutil.Process(trial.process.pid), threading.Event()
        began_s = time.monotonic()

        def sample() -> None:
            with contextlib.suppress(psutil.Error):
                while not over.wait(EVERY_S):
                    samples.take(process, time.monotonic() - began_s)

        sampler = threading.Thread(target=sample, daemon=True)
        sampler.start()
        try:
            yield
        finally:
            over.set()
            sampler.join()

    return beside
