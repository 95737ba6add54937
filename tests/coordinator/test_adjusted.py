"""A DNN whose priority, rate or latency constraint the app changes while it runs."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.bystander import Bystander
from heimdall.coordinator.replay import record, replay
from heimdall.coordinator.states import CoordinationError
from heimdall.errors import ConfigError
from heimdall.schedulers import SCHEDULERS
from heimdall.schedulers.utility import utility_for
from heimdall.vocabulary.events import DnnAdjusted, DnnBuilt, Finish, JobFailed, Prepare

MS = 1_000_000


def adjusted(dnn, priority="normal", constraint_ms=1000.0, interval_ms=0.0):
    utility = utility_for(priority, constraint_ms)
    return DnnAdjusted(dnn, priority, utility, int(constraint_ms * MS), int(interval_ms * MS))


@pytest.fixture
def world(sim):
    """Two DNNs alike, which together want more than the GPU has."""
    plans = [sim.plan(name, sim.stage([2] * 40)) for name in ("face", "detect")]
    return sim.world(plans, scheduler="max-total", offload=False)


def rate_hz(world, dnn, from_ms, to_ms):
    ended = [at for at, action in world.timed(Finish) if action.dnn == dnn]
    return sum(from_ms <= at < to_ms for at in ended) / (to_ms - from_ms) * 1000


@pytest.mark.parametrize(("scheduler", "times"), [("max-total", 1.5), ("max-min", 1.1)])
def test_a_dnn_of_a_higher_priority_runs_more_often_from_then_on(sim, scheduler, times):
    plans = [sim.plan(name, sim.stage([2] * 40)) for name in ("face", "detect")]
    world = sim.world(plans, scheduler=scheduler, offload=False)
    world.at(5000, adjusted("face", "high", 200))
    world.at(10000, adjusted("face"))
    world.run(15)
    sim.check(world)
    alike = rate_hz(world, "face", 0, 5000)
    assert alike == pytest.approx(rate_hz(world, "detect", 0, 5000), abs=0.5)
    assert rate_hz(world, "face", 5000, 10000) > times * alike
    assert rate_hz(world, "face", 5000, 10000) > times * rate_hz(world, "detect", 5000, 10000)
    assert rate_hz(world, "face", 11000, 15000) == pytest.approx(alike, abs=0.6)


def test_misses_are_counted_by_the_constraint_of_their_time(world):
    world.at(5000, adjusted("face", constraint_ms=1))
    world.run(10)
    ended = [(at, each.missed) for at, each in world.timed(Finish) if each.dnn == "face"]
    assert {missed for at, missed in ended if at < 5000} == {False}
    assert {missed for at, missed in ended if at > 5500} == {True}


def test_a_higher_rate_counts_at_once_even_while_the_dnn_rests(sim):
    plan = sim.plan("face", sim.stage([1]), min_interval_ms=2000)
    world = sim.world([plan])
    world.at(500, adjusted("face", interval_ms=100))
    world.run(3)
    times = [at for at, _ in world.timed(Prepare)]
    assert times[1] == pytest.approx(500, abs=1)
    assert [round(b - a, -1) for a, b in pairwise(times[1:])] == [100] * (len(times) - 2)


def test_a_lower_rate_counts_at_once_as_well(sim):
    world = sim.world([sim.plan("face", sim.stage([1]), min_interval_ms=100)])
    world.at(1050, adjusted("face", interval_ms=1000))
    world.run(4)
    later = [at for at, _ in world.timed(Prepare) if at > 1050]
    assert later == pytest.approx([2000, 3000], abs=20)


def test_a_dnn_that_fails_rests_all_the_same(sim):
    world = sim.world([sim.plan("face", sim.stage([1]))])
    world.run(0.5)
    world.tell(JobFailed(world.actions(Prepare)[-1].job, "broken"))
    assert world.tell(adjusted("face", interval_ms=1)) == []
    before = len(world.actions(Prepare))
    world.run(0.5)
    assert len(world.actions(Prepare)) > before


def test_a_run_with_adjustments_replays_with_the_same_actions(world):
    config = world.coordinator.config()
    world.at(500, adjusted("face", "high", 200, 50))
    world.at(1500, adjusted("face"))
    world.run(3)
    records = json.loads(json.dumps([record(*call) for call in world.log]))
    assert list(replay(config, records)) == []
    without = [each for each in records if (each["event"] or {}).get("type") != "DnnAdjusted"]
    assert next(replay(config, without), None) is not None


def test_the_configuration_holds_what_is_wanted_now(world):
    world.run(0.1)
    world.tell(adjusted("detect", "low", 3000, 40))
    again = Coordinator.from_config(json.loads(json.dumps(world.coordinator.config())))
    plans = {plan["name"]: plan for plan in again.config()["dnns"]}
    assert plans["detect"]["priority"] == "low"
    assert plans["detect"]["constraint_ns"] == 3000 * MS
    assert plans["detect"]["min_interval_ns"] == 40 * MS
    assert plans["face"]["priority"] == "normal"
    assert again.snapshot(0).dnns["detect"].constraint_ns == 3000 * MS


def test_what_was_wanted_while_a_dnn_was_built_holds_when_it_is(sim):
    """Its plan may have been made before."""
    plan = sim.plan("face", sim.stage([1] * 9, cpu_ms=20), min_interval_ms=500)
    world = sim.world([replace(plan, built=False)])
    world.at(400, adjusted("face", "high", 100, 10))
    world.run(1)
    waiting = world.coordinator.config()["dnns"][0]
    assert (waiting["priority"], waiting["min_interval_ns"]) == ("high", 500 * MS)
    world.tell(DnnBuilt(replace(plan, min_interval_ns=100 * MS)))
    built = world.coordinator.config()["dnns"][0]
    assert (built["priority"], built["min_interval_ns"]) == ("high", 10 * MS)


@pytest.mark.parametrize(
    ("event", "error", "words"),
    [
        (adjusted("nose"), CoordinationError, "'nose'.*detect, face"),
        (adjusted("face", constraint_ms=0), ConfigError, "latency constraint of 0 ns"),
        (adjusted("face", interval_ms=-1), ConfigError, "interval of -1000000 ns"),
        (replace(adjusted("face"), priority="urgent"), ConfigError, "'urgent'.*high, low, normal"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(world, event, error, words):
    before = world.coordinator.config()
    with pytest.raises(error, match=words):
        world.tell(event)
    assert world.coordinator.config() == before


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_policy_lives_with_it(sim, scheduler):
    plans = [sim.plan(name, sim.stage([2] * 20)) for name in ("face", "detect")]
    world = sim.world(plans, scheduler=scheduler)
    for at_ms in range(200, 3000, 200):
        world.at(at_ms, adjusted("face", ("low", "high")[at_ms // 200 % 2], at_ms, at_ms / 20))
    world.run(4)
    sim.check(world)
    assert rate_hz(world, "detect", 0, 4000) > 0


def test_the_baselines_show_the_constraint_that_is_wanted(sim):
    bystander = Bystander([sim.plan("face", sim.stage([1]))])
    assert bystander.receive(adjusted("face", constraint_ms=50), 0) == []
    assert bystander.snapshot(0).dnns["face"].constraint_ns == 50 * MS


@pytest.mark.parametrize("admission", ["one-in-flight", "replace"])
def test_what_is_wanted_holds_for_the_inference_in_flight_with_any_admission(sim, admission):
    plans = [sim.plan(name, sim.stage([6] * 20)) for name in ("face", "detect")]
    world = sim.world(plans, admission=admission, offload=False)
    world.run(1)
    world.at(1, adjusted("face", "high", 1))
    world.run(0.002)
    job = world.coordinator._dnns["face"].job
    assert (job.priority, job.seen.priority) == ("high", "high")
    assert job.seen.constraint_ns == 1 * MS
    assert job.seen.deadline_ns == job.enqueued_ns + 1 * MS
    world.run(1)
    ended = [(at, each) for at, each in world.timed(Finish) if each.dnn == "face"]
    assert {each.missed for at, each in ended if at < 1000} == {False}
    assert {each.missed for at, each in ended if at > 1002} == {True}
