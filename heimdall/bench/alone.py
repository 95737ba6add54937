"""What no coordination can help: a network that is too slow even alone."""

from __future__ import annotations


def too_slow_alone(
    name: str, alone_ms: float, constraint_ms: float, *, fps: float, render_ms: float
) -> str | None:
    """Why DNN ``name`` would miss its latency constraint with all gaps between frames for itself;
    None when it would not. ``alone_ms``: the whole of it on the GPU, ``render_ms``: one frame."""
    interval_ms = 1000.0 / fps
    gap_ms = max(interval_ms - render_ms, 0.0)
    needed_ms = alone_ms * interval_ms / gap_ms if gap_ms else float("inf")
    if needed_ms <= constraint_ms:
        return None
    return (
        f"{name} cannot meet its latency constraint of {constraint_ms:.0f} ms on the GPU "
        f"even alone: it takes {alone_ms:.0f} ms of GPU time, which is {needed_ms:.0f} ms "
        f"in gaps of {gap_ms:.1f} ms between frames {interval_ms:.1f} ms apart"
    )
