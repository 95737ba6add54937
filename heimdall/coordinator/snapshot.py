"""What the overlay and the run summary read from a coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from heimdall.coordinator.gap import Gap


@dataclass(frozen=True, slots=True)
class DnnStatus:
    """One DNN now. ``state`` is the job's state or "idle"; ``utility`` is None while nothing is
    enqueued; ``moving_to`` is "" unless a move is under way; ``reason`` why it last got the GPU.
    Expected times are of one lone inference without waiting."""

    name: str
    processor: str
    state: str
    constraint_ns: int
    moving_to: str = ""
    latency_ns: int | None = None
    utility: float | None = None
    reason: str = ""
    gpu: int = 0
    cpu: int = 0
    misses: int = 0
    failures: int = 0
    expected_gpu_ns: int = 0
    expected_cpu_ns: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The coordinator at one moment; ``decisions`` counts calls of the scheduler."""

    now_ns: int
    dnns: dict[str, DnnStatus]
    gap: Gap  # a copy
    decisions: int
