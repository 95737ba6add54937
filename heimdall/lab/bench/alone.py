"""Each piece of a run's GPU work alone: what no coordination can help, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heimdall.analyzer.profiler import Progress, gpu_passes, no_progress
from heimdall.runtime.execution.deployment import Deployment
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import GPU

LONE_S = 6.0  # for all of them together, at least a turn each


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


def measure_useful(
    summary: Mapping[str, Any],
    drawings: Sequence[tuple[int, Callable[[], int]]],
    deployments: Mapping[str, Deployment],
    progress: Progress = no_progress,
    seconds: float = LONE_S,
) -> dict[str, float]:
    """What the drawings and inferences of a run would have taken of the GPU with nothing beside, as
    ``useful_ms`` and ``frames_useful_ms`` of ``gpu`` in its summary.

    ``drawings``: how many of a kind there were, and what draws one and returns the ns that it
    took. Measured right after the run, with the content that its frames had in the end. In turns
    over some seconds, and the means count, not the best: the run had the machine's slow moments
    too.
    """
    works = [*drawings]
    for name, deployment in deployments.items():
        count = summary["dnns"][name]["gpu"]
        if count:
            stages = zip(deployment.plan.stages, deployment.networks(GPU), strict=True)
            works += [(count * stage.tasks, gpu_passes(network)) for stage, network in stages]
    taken_ns = [0] * len(works)
    began_s, turns, elapsed_s = time.perf_counter(), 0, 0.0
    while not turns or elapsed_s < seconds:
        for index, (_, run) in enumerate(works):
            taken_ns[index] += run()
        turns += 1
        elapsed_s = time.perf_counter() - began_s
        progress("measuring each alone", round(min(elapsed_s / seconds, 1.0) * 100), 100)
    each_ns = [count * ns / turns for (count, _), ns in zip(works, taken_ns, strict=True)]
    frames_ns, useful_ns = sum(each_ns[: len(drawings)]), sum(each_ns)
    return {
        "useful_ms": round(useful_ns / 1e6, 1),
        "frames_useful_ms": round(frames_ns / 1e6, 1),
    }
