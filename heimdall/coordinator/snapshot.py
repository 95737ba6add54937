"""What the overlay and the run summary read from a coordinator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DnnStatus:
    """One DNN now. ``state`` is the job's state or "idle"; ``utility`` is None while nothing is
    enqueued; ``moving_to`` is "" unless a move is under way; ``reason`` why it last got the GPU.
    Expected times are of one lone inference without waiting."""

    name: str
    processor: str
    moving_to: str
    state: str
    latency_ns: int | None
    constraint_ns: int
    utility: float | None
    reason: str
    gpu: int
    cpu: int
    misses: int
    failures: int
    expected_gpu_ns: int
    expected_cpu_ns: int


@dataclass(frozen=True, slots=True)
class GapStats:
    """Sums over all gaps so far; ``overruns`` counts chunks that ended after their gap."""

    gaps: int
    opened_ns: int
    runnable_ns: int
    busy_ns: int
    overruns: int
    usual_ns: int

    @property
    def utilization(self) -> float:
        """Chunk GPU time / gap time while work was runnable (1 when there never was any)."""
        return self.busy_ns / self.runnable_ns if self.runnable_ns else 1.0

    def utilization_since(self, before: GapStats) -> float:
        """The utilization since ``before``, an earlier moment."""
        runnable_ns = self.runnable_ns - before.runnable_ns
        return (self.busy_ns - before.busy_ns) / runnable_ns if runnable_ns else 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The coordinator at one moment; ``decisions`` counts calls of the scheduler."""

    now_ns: int
    dnns: dict[str, DnnStatus]
    gap: GapStats
    decisions: int
