"""Events that cannot happen are refused without effect; late ones are understood."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.states import CoordinationError
from heimdall.errors import ConfigError
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnAdded,
    DnnMoved,
    DnnRemoved,
    Finish,
    FrameArrived,
    InferenceRequested,
    InputReady,
    JobFailed,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RenderingStopped,
    RunChunk,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU, GPU, SERVER, usual


def begun(sim, *plans, **options):
    """A coordinator whose GPU is free, for good."""
    coordinator = Coordinator(
        plans, scheduler="max-min", frame_interval_ns=33 * sim.ms, offload=False, **options
    )
    return coordinator, coordinator.receive(RenderingStopped(), 0)


def test_a_frame_for_a_dnn_that_is_not_known_begins_none_of_the_others(sim):
    coordinator, _ = begun(sim, sim.plan("a", sim.stage([4])), repeats=False)
    with pytest.raises(CoordinationError, match="nobody"):
        coordinator.receive(FrameArrived(("a", "nobody"), 1), 0)
    assert coordinator.receive(FrameArrived(("a",), 1), 0) == [Prepare(0, "a", 0)]


def test_a_plan_that_cannot_be_leaves_a_removed_dnn_removed(sim):
    coordinator, _ = begun(sim, sim.plan("a", sim.stage([4])))
    coordinator.receive(DnnRemoved("a"), 0)
    with pytest.raises(ConfigError, match="has no network"):
        coordinator.receive(DnnAdded(DnnPlan("a", (), 1)), 0)
    assert coordinator.receive(FrameArrived(("a",), 1), 0) == []  # it was on its way


def test_a_dnn_cannot_be_where_it_has_no_network(sim):
    coordinator, _ = begun(sim, sim.plan("a", sim.stage([4])), processors=(*usual(1), SERVER))
    with pytest.raises(CoordinationError, match="cannot be on 'remote'"):
        coordinator.receive(DnnMoved("a", "remote"), 0)
    assert coordinator.snapshot(0).dnns["a"].processor == GPU


def test_a_processor_that_is_back_twice_moves_nothing_twice(sim):
    coordinator, _ = begun(sim, sim.plan("a", sim.stage([4])))
    coordinator.receive(ProcessorLost(GPU), 0)
    coordinator.receive(DnnMoved("a", CPU), 0)
    assert [each.processor for each in coordinator.receive(ProcessorBack(GPU), 1)] == [GPU]
    assert coordinator.receive(ProcessorBack(GPU), 2) == []


def test_a_chunk_cannot_take_less_than_no_time(sim):
    coordinator, _ = begun(sim, sim.plan("a", sim.stage([4])))
    coordinator.receive(InputReady(0), 0)
    with pytest.raises(CoordinationError, match="took -1 and 0 ns"):
        coordinator.receive(ChunkFinished(0, GPU, 0, 1, -1), 0)
    assert isinstance(coordinator.receive(ChunkFinished(0, GPU, 0, 1, 1), 0)[0], Finish)


def test_a_result_that_could_not_be_decoded_counts_once(sim):
    coordinator, _ = begun(sim, sim.plan("a", sim.stage([4])))
    coordinator.receive(InputReady(0), 0)
    coordinator.receive(ChunkFinished(0, GPU, 0, 1, 1), 0)
    for _ in range(2):
        assert coordinator.receive(JobFailed(0, "no"), 1) == []
    assert coordinator.snapshot(0).dnns["a"].failures == 1


def test_what_was_dropped_may_report_back_after_any_number_of_others(sim):
    """Preprocessing that hangs for seconds, while another network ends hundreds of jobs."""
    plans = [sim.plan("a", sim.stage([4])), sim.plan("b", sim.stage([4]))]
    coordinator, _ = begun(sim, *plans)
    coordinator.receive(DnnRemoved("b"), 0)
    for job in (0, *range(2, 400)):
        coordinator.receive(InputReady(job), job)
        coordinator.receive(ChunkFinished(job, GPU, 0, 1, 1), job)
    assert coordinator.receive(InputReady(1), 500) == []
    with pytest.raises(CoordinationError, match="not known"):
        coordinator.receive(InputReady(10_000), 500)


@pytest.mark.parametrize("back", [False, True])
def test_what_a_lost_processor_was_at_may_be_told_after_the_job_has_ended(sim, back):
    """A request goes on on the CPU; what the GPU had been given ends all the same."""
    plan = replace(sim.plan("r", sim.stage([4])), continuous=False, queued=True)
    coordinator, _ = begun(sim, plan)
    coordinator.receive(InferenceRequested("r", 0), 0)
    (chunk,) = coordinator.receive(InputReady(0), 0)
    assert (type(chunk), chunk.processor) == (RunChunk, GPU)
    coordinator.receive(ProcessorLost(GPU), 1)
    (chunk,) = coordinator.receive(DnnMoved("r", CPU), 2)
    assert chunk.processor == CPU
    (finish,) = coordinator.receive(ChunkFinished(0, CPU, 0, 1, 9), 3)
    assert finish.request == 0
    if back:
        coordinator.receive(ProcessorBack(GPU), 4)
    assert coordinator.receive(ChunkFinished(0, GPU, 0, 1, 9), 5) == []
    with pytest.raises(CoordinationError, match="is finished"):  # that is told once
        coordinator.receive(ChunkFinished(0, GPU, 0, 1, 9), 6)


def test_a_static_chunk_that_ends_amid_fallback_ops_is_over_when_they_have_run(sim):
    stage = sim.stage([2] * 6, fallback=[1, 2, 3], chunks=[(0, 2), (2, 6)])
    world = sim.world([sim.plan("a", stage)], scheduler="max-min", mode="static", offload=False)
    sim.check(world.run(1))
    assert len(world.finishes("a")) > 5
