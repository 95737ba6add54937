"""Accuracy under contention: how well what is on screen matches what is there (section 9.6).

The results of a network on every frame are the truth. A system's inferences, recorded or
simulated, are replayed over the same frames: each result belongs to the frame at which it was
requested and is on screen from the moment it was ready. The figure is the intersection over
union (IoU) of what is on screen with the truth, frame by frame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.capture import Frame
from heimdall.errors import ConfigError
from heimdall.lab.likeness import boxes_iou, mask_iou
from heimdall.models.results import Mask
from heimdall.tracking import Tracker


@dataclass(frozen=True)
class Inference:
    """When one inference took its frame, and when its result could be drawn, in ms."""

    requested_ms: float
    shown_ms: float


@dataclass(frozen=True)
class Score:
    """IoU over the frames since the first result: mean, standard deviation, and how many."""

    mean: float
    std: float
    frames: int


def in_turn(latencies_ms: Iterable[float]) -> list[Inference]:
    """Inferences of these end-to-end latencies, each requested when the one before is shown, as a
    DNN runs that nothing holds back."""
    ends = list(accumulate(latencies_ms, initial=0.0))
    return [Inference(*pair) for pair in pairwise(ends)]


def back_to_back(latency_ms: float, seconds: float) -> list[Inference]:
    """Inferences of one constant latency in turn, for so many seconds."""
    return in_turn(latency_ms for _ in range(int(1000 * seconds / latency_ms)))


def read_inferences(path: str | Path, dnn: str) -> list[Inference]:
    """The inferences of ``dnn`` in a trace of ``heimdall run --trace``, from preprocessing (which
    takes the newest frame) to the end of decoding, counted from the first.

    Raises ConfigError when the file cannot be read or has none.
    """
    try:
        events = json.loads(Path(path).read_text())["traceEvents"]
        spans = sorted((e["ts"], e["dur"], e["name"]) for e in events if e["ph"] == "X")
    except OSError as error:
        raise ConfigError(f"cannot read trace {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no trace of `heimdall run --trace`: {error}") from error
    found: list[Inference] = []
    requested_us: float | None = None
    for start_us, duration_us, name in spans:
        if name == f"{dnn} preprocess" and requested_us is None:
            requested_us = start_us  # later ones are stages of the same inference
        elif name == f"{dnn} decode" and requested_us is not None:
            found.append(Inference(requested_us / 1e3, (start_us + duration_us) / 1e3))
            requested_us = None
    if not found:
        raise ConfigError(f"trace {path} has no finished inference of DNN {dnn!r}")
    zero = found[0].requested_ms
    return [Inference(each.requested_ms - zero, each.shown_ms - zero) for each in found]


def on_screen(
    frames: Sequence[Frame], truth: Sequence[Any], inferences: Sequence[Inference], carry: bool
) -> list[Any]:
    """What is drawn on each frame; None before the first result.

    ``carry``: moved to that frame by a Tracker, as ``App.tracked`` gives it; else the latest
    result as it came.
    """
    tracker, latest, shown = Tracker(), None, []
    # A tracker follows from the first question on, densely from the first mask on.
    tracker.carried("dnn")
    tracker.renew("earlier", truth[0], frames[0])
    arrivals = [(each, _newest(frames, each.requested_ms)) for each in inferences]
    for frame in frames:
        if carry:
            tracker.advance(frame)
        while arrivals and arrivals[0][0].shown_ms * 1e6 <= frame.captured_ns:
            _, taken = arrivals.pop(0)
            latest = truth[taken]
            if carry:
                tracker.renew("dnn", latest, frames[taken])
        tracker.show(frame)
        shown.append(tracker.carried("dnn") if carry else latest)
    return shown


def _newest(frames: Sequence[Frame], time_ms: float) -> int:
    times = [frame.captured_ns for frame in frames]
    return max(0, int(np.searchsorted(times, time_ms * 1e6 + 1)) - 1)


def score(shown: Sequence[Any], truth: Sequence[Any]) -> Score:
    """Mean IoU of boxes or masks on screen with the truth, since the first result."""
    values = [
        _iou(there)(drawn, there)
        for drawn, there in zip(shown, truth, strict=True)
        if drawn is not None
    ]
    if not values:
        raise ConfigError("no result came within the footage: take more seconds")
    return Score(float(np.mean(values)), float(np.std(values)), len(values))


def _iou(result: Any) -> Callable[[Any, Any], float]:
    return mask_iou if isinstance(result, Mask) else boxes_iou
