"""Each piece of a run's GPU work alone: what no coordination can help, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heimdall.analyzer.profiler import Progress, measure_gpu, measure_render, no_progress
from heimdall.coordinator.events import GPU, DnnPlan
from heimdall.deployment import Deployment


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


def measure_useful_ms(
    summary: Mapping[str, Any],
    submit: Callable[[], None],
    finish: Callable[[], None],
    deployments: Mapping[str, Deployment],
    progress: Progress = no_progress,
) -> float:
    """What the frames and inferences of a run would have taken of the GPU with nothing beside.

    Measured right after the run: with the content that its frames had in the end, and at the
    speed that the machine has now (a shared one has another one every few minutes).
    """
    useful_ns = summary["frames"] * measure_render(submit, finish)
    for name, deployment in deployments.items():
        count = summary["dnns"][name]["gpu"]
        if count:
            networks = deployment.networks(GPU)
            tasks = [stage.tasks for stage in deployment.plan.stages]
            lone_ns = (measure_gpu(network, progress) for network in networks)
            useful_ns += count * sum(n * ns for n, ns in zip(tasks, lone_ns, strict=True))
    return round(float(useful_ns) / 1e6, 1)
