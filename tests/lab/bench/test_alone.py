"""Networks that no coordination can help, and what the work of a run takes alone."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from heimdall.engine.null import NullEngine
from heimdall.graph.graph import load_graph
from heimdall.lab.bench import alone
from heimdall.lab.bench.alone import measure_useful, too_slow_alone
from heimdall.vocabulary.plans import DnnPlan, StagePlan

MS = 1_000_000


def plan(gpu_ms: int, fallback_ms: int, constraint_ms: int) -> DnnPlan:
    stage = StagePlan((gpu_ms * MS, fallback_ms * MS), (False, True), 99 * MS, 0, ((0, 1), (1, 2)))
    return DnnPlan("eye", (stage,), constraint_ms * MS)


def test_gpu_time_counts_as_the_gaps_let_it_through():
    assert too_slow_alone(plan(30, 0, 60), fps=50, render_ms=10) is None
    why = too_slow_alone(plan(31, 0, 60), fps=50, render_ms=10)
    assert why == (
        "eye cannot meet its latency constraint of 60 ms on the GPU even alone: it takes 31 ms "
        "of GPU time, which is 62 ms in gaps of 10.0 ms between frames 20.0 ms apart"
    )


def test_ops_on_the_cpu_do_not_wait_for_gaps():
    assert too_slow_alone(plan(20, 20, 60), fps=50, render_ms=10) is None
    assert too_slow_alone(plan(20, 21, 60), fps=50, render_ms=10).endswith(
        "21 ms for ops on the CPU"
    )


@pytest.mark.parametrize("render_ms", [20.0, 25.0])
def test_without_a_gap_nothing_can_be_met(render_ms):
    assert "inf ms in gaps of 0.0 ms" in too_slow_alone(plan(1, 0, 60), fps=50, render_ms=render_ms)


def test_useful_is_what_each_frame_and_inference_takes_alone(assets):
    graph = load_graph(assets / "models" / "hand_landmark_lite_224.onnx")
    loaded = NullEngine(op_ns=MS).load(graph)
    deployments: dict[str, Any] = {}
    for name, tasks in (("eye", 1), ("hands", 3), ("idle", 1)):
        plan = DnnPlan(name, (StagePlan((), (), 0, 0, (), tasks),), MS)
        deployments[name] = SimpleNamespace(plan=plan, networks=lambda processor: [loaded])
    counts = {"eye": 2, "hands": 1, "idle": 0}
    summary = {"dnns": {name: {"gpu": count} for name, count in counts.items()}}
    network_ms = len(loaded.ops)
    drawings = [(8, lambda: 4 * MS), (2, lambda: MS)]
    useful = measure_useful(summary, drawings, deployments, seconds=0.01)
    assert useful == {"useful_ms": 34 + (2 + 3) * network_ms, "frames_useful_ms": 34}


def test_the_mean_over_the_turns_counts(monkeypatch):
    drawn, ticks = iter([2 * MS, 6 * MS, 7 * MS]), count()
    monkeypatch.setattr(alone.time, "perf_counter", lambda: next(ticks))
    steps: list[int] = []
    useful = measure_useful(
        {"dnns": {}}, [(10, lambda: next(drawn))], {}, lambda *step: steps.append(step[1]), 3
    )
    assert useful["useful_ms"] == pytest.approx(50)
    assert steps == [33, 67, 100]
