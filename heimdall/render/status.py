"""What the overlay shows: plain values, filled in by the runtime for every frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heimdall.vocabulary.enums import OverlayView


@dataclass(frozen=True)
class DnnStatus:
    """One network: expected latency, what it may take, where it runs and how it keeps up."""

    name: str
    latency_ms: float | None  # None before the first result
    constraint_ms: float
    processor: str
    rate_hz: float
    age_ms: float | None  # of the result on screen
    misses: int
    active: bool  # has the processor now
    exit: str = ""  # the early exit that made the result, of a network that has some


@dataclass(frozen=True)
class Status:
    """One frame's numbers. ``frame_ms``: the last frame intervals, newest last."""

    app: str
    fps: float
    fps_target: float
    frame_ms: Sequence[float]
    late_frames: int
    scheduler: str
    mode: str
    device: str
    dnns: tuple[DnnStatus, ...]
    gap_utilization: float | None
    reason: str
    picture_age_ms: float | None = None  # of the camera picture when it is shown; None: no camera
    message: str = ""  # an error to show until it is gone
    notice: str = ""  # what the user asked for is done
    view: str = OverlayView.PANEL
    others: Sequence[str] = ()  # processors beside the GPU and the CPU, in the timeline's order
    help: Sequence[tuple[str, str]] = ()  # keys and what they do, while the card is shown
    now_ns: int = 0  # the right edge of the timeline, on the clock of its spans
