"""Another policy, chunk mode or frame rate while jobs are in flight."""

from __future__ import annotations

import json

import pytest

from heimdall.coordinator.replay import record, replay
from heimdall.errors import ConfigError
from heimdall.vocabulary.events import Reconfigured, RunChunk

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
