"""Another policy, chunk mode or frame rate while jobs are in flight."""

from __future__ import annotations

import json

import pytest

from heimdall.coordinator.replay import record, replay
from heimdall.errors import ConfigError
from heimdall.vocabulary.events import (
    Finish,
    Move,
    ProcessorLost,
    Reconfigured,
    RunChunk,
    RunFallback,
)

WHOLE = ((0, 30),)
HALVES = ((0, 15), (15, 30))


@pytest.fixture
def world(sim):
    plans = [sim.plan(name, sim.stage([1] * 30, chunks=WHOLE)) for name in "ab"]
    return sim.world(plans, scheduler="max-min")


def change(scheduler="max-total", mode="elastic", interval_ms=33.333, chunks=(WHOLE, WHOLE)):
    return Reconfigured(scheduler, mode, int(interval_ms * 1e6), chunks)


def test_jobs_in_flight_go_on_under_the_new_policy(sim, world):
    world.at(500, change())
    world.run(2)
    sim.check(world)
    assert world.coordinator.scheduler.name == "max-total"
    reasons = {chunk.reason for at_ms, chunk in world.timed(RunChunk) if at_ms > 500}
    assert reasons
    assert world.finishes("a")[-1].job > world.finishes("a")[0].job


def test_static_mode_uses_the_new_partition_from_then_on(sim, world):
    world.at(500, change(mode="static", chunks=(HALVES, HALVES)))
    world.run(2)
    sim.check(world)
    later = [chunk for at_ms, chunk in world.timed(RunChunk) if at_ms > 600]
    assert {(chunk.start_op, chunk.end_op) for chunk in later} == set(HALVES)


def test_a_run_that_was_changed_replays_with_the_same_actions(world):
    config = world.coordinator.config()
    world.at(500, change(mode="static", interval_ms=66.667, chunks=(HALVES, WHOLE)))
    world.run(2)
    records = json.loads(json.dumps([record(*call) for call in world.log]))
    assert list(replay(config, records)) == []


@pytest.mark.parametrize(
    "event",
    [change("fifo"), change(mode="rubber"), change(interval_ms=0), change(chunks=(WHOLE,))],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(world, event):
    before = world.coordinator.config()
    with pytest.raises(ConfigError):
        world.tell(event)
    assert world.coordinator.config() == before


@pytest.mark.parametrize("scheduler", ["fcfs", "max-total"])
def test_jobs_in_flight_run_where_the_new_policy_has_them(sim, scheduler):
    """One that chooses a processor for each range may send to the CPU what was bound to the GPU,
    and the other way round."""
    before = {"fcfs": "max-min", "max-total": "fcfs"}[scheduler]
    plans = [sim.plan(name, sim.stage([3] * 10, cpu_ms=31)) for name in "abc"]
    world = sim.world(plans, scheduler=before, offload=False, cpu_workers=2)
    world.at(500, change(scheduler, chunks=(((0, 10),),) * 3))
    world.run(2)
    assert not world.coordinator.faults.messages
    chunks = [chunk for at_ms, chunk in world.timed(RunChunk) if at_ms > 500]
    assert {chunk.dnn for chunk in chunks} == {"a", "b", "c"}
    late = {chunk.processor for at_ms, chunk in world.timed(RunChunk) if at_ms > 1000}
    assert late == ({"gpu", "cpu"} if scheduler == "fcfs" else {"gpu"})


def test_dnns_leave_a_lost_processor_once_a_policy_binds_them(sim):
    world = sim.world([sim.plan("a", sim.stage([4]))], scheduler="fcfs")
    world.at(100, ProcessorLost("gpu"))
    world.at(500, change("max-min", chunks=(((0, 1),),)))
    world.run(1)
    ended = [at_ms for at_ms, _ in world.timed(Finish)]
    assert any(150 < at_ms < 500 for at_ms in ended)  # on the CPU, of its own accord
    assert any(at_ms > 600 for at_ms in ended)
    assert [move.processor for move in world.actions(Move)] == ["cpu"]


def test_a_chunk_that_was_under_way_ends_with_its_partition(sim):
    """It is away for its fallback op when networks are cut another way."""
    stage = sim.stage([1, 40] + [1] * 28, fallback=[1], chunks=WHOLE)
    world = sim.world([sim.plan("a", stage)], scheduler="max-min", mode="static")
    world.run(0.06)
    assert world.actions(RunFallback)
    world.tell(change("max-min", mode="static", chunks=(HALVES,)))
    world.run(1)
    sim.check(world)
    assert world.finishes("a")
    ranges = {(chunk.start_op, chunk.end_op) for chunk in world.actions(RunChunk)}
    assert ranges == {(0, 1), (2, 15), (15, 30)}


@pytest.mark.parametrize("wrong", [((0, 31),), ((0, 10), (12, 30)), ((0, 0), (0, 30))])
def test_a_partition_that_does_not_fit_changes_nothing(world, wrong):
    config, snapshot = world.coordinator.config(), world.coordinator.snapshot(0)
    with pytest.raises(ConfigError, match="do not cover ops"):
        world.coordinator.receive(change(mode="static", chunks=(WHOLE, wrong)), 0)
    assert world.coordinator.config() == config
    assert world.coordinator.snapshot(0).dnns == snapshot.dnns
