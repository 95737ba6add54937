"""What no coordination can help: a network that is too slow even alone."""

from __future__ import annotations

from heimdall.coordinator.events import DnnPlan


def too_slow_alone(plan: DnnPlan, *, fps: float, render_ms: float) -> str | None:
    """Why a DNN would miss its latency constraint with all gaps between frames for itself; None
    when it would not. ``render_ms``: what one frame takes of the GPU."""
    gpu_ms, fallback_ms, constraint_ms = (
        ns / 1e6 for ns in (plan.gpu_ns, plan.fallback_ns, plan.constraint_ns)
    )
    interval_ms = 1000.0 / fps
    gap_ms = max(interval_ms - render_ms, 0.0)
    in_gaps_ms = gpu_ms * interval_ms / gap_ms if gap_ms else float("inf")
    if in_gaps_ms + fallback_ms <= constraint_ms:
        return None
    return (
        f"{plan.name} cannot meet its latency constraint of {constraint_ms:.0f} ms on the GPU "
        f"even alone: it takes {gpu_ms:.0f} ms of GPU time, which is {in_gaps_ms:.0f} ms "
        f"in gaps of {gap_ms:.1f} ms between frames {interval_ms:.1f} ms apart"
        + (f", and {fallback_ms:.0f} ms for ops on the CPU" if plan.fallback_ns else "")
    )
