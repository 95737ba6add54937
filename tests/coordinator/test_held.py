"""A job of high priority that may be late keeps the GPU while its fallback ops run on the CPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from heimdall.vocabulary.events import ChunkFinished, InputReady, RunFallback
from heimdall.vocabulary.processors import GPU
from tests.coordinator.test_coordinator import Steps, ranges


@pytest.fixture
def asked(sim):
    """What one of three ops, the second a fallback op, is answered early in a gap of 60 ms, after a
    chunk of another job of which one heard ``late_ms`` late."""

    def ask(ms=(4, 6, 4), late_ms=10, **options):
        plan = {"priority": "high", "constraint_ms": 60, **options.pop("plan", {})}
        urgent = sim.plan("a", sim.stage(ms, fallback=[1]), **plan)
        steps = Steps(sim, urgent, sim.plan("b", sim.stage([3])), **options)
        steps.frame(0, 60)
        (chunk,) = steps(0, InputReady(1))
        steps.done(3 + late_ms, chunk, 3)
        (chunk,) = ranges(steps(14, InputReady(0)))
        return SimpleNamespace(steps=steps, chunk=chunk, ms=sim.ms)

    return ask


@pytest.mark.parametrize("scheduler", ["max-min", "max-total"])
def test_it_is_held_through_them(asked, scheduler):
    assert asked(scheduler=scheduler).chunk == ("a", 0, 3)


@pytest.mark.parametrize(
    "why",
    [
        {"plan": {"priority": "normal"}},  # not so urgent
        {"plan": {"constraint_ms": 400}},  # in time anyway
        {"late_ms": 0},  # handing over costs nothing
        {"ms": (4, 12, 4)},  # it would be held for too long
        {"ms": (4, 6, 40)},  # nothing behind the fallback op fits
    ],
    ids=str,
)
def test_else_a_fallback_op_ends_a_chunk(asked, why):
    assert asked(**why).chunk == ("a", 0, 1)


def test_a_chunk_of_a_partition_ends_where_that_says(sim):
    urgent = sim.plan("a", sim.stage([4, 6, 4], fallback=[1]), priority="high", constraint_ms=40)
    steps = Steps(sim, urgent, mode="static-runs")
    steps.frame(0, 27)
    steps(28, InputReady(0))
    assert ranges(steps.frame(33, 60, 1)) == [("a", 0, 1)]


def test_it_ends_where_the_gap_does(asked):
    assert asked(ms=(4, 6, 4, 40)).chunk == ("a", 0, 3)


def test_what_it_took_on_either_processor_is_learnt_and_only_one_counts_as_gpu_time(asked):
    it = asked()
    coordinator = it.steps.coordinator
    event = ChunkFinished(0, GPU, 0, 3, 8 * it.ms, 12 * it.ms)
    it.steps(36, event)
    gap = coordinator.snapshot(it.steps.start + 40 * it.ms).gap
    assert gap.busy_ns == (3 + 8) * it.ms
    costs = coordinator._dnns["a"].costs[0]  # what the next decision goes by
    assert costs.gpu_ratio.value == 1.0
    assert costs.fallback_ratio.value > 1.0


def test_a_chunk_that_ends_early_goes_on_with_its_fallback_op(asked):
    it = asked()
    actions = it.steps(20, ChunkFinished(0, GPU, 0, 1, 4 * it.ms))
    assert actions[0] == RunFallback(0, "a", 0, 0, 1, 2)
