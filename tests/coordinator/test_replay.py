from __future__ import annotations

import json

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.codec import from_dict, to_dict
from heimdall.coordinator.replay import record, replay
from heimdall.errors import ConfigError
from heimdall.vocabulary.events import (
    DnnAdded,
    DnnRemoved,
    Drop,
    FrameRendered,
    InputReady,
    ProcessorLost,
    RenderingStopped,
)


@pytest.fixture(scope="module")
def recorded(sim):
    """Five busy seconds: stages, fallback ops, moves, a lost GPU, a rate cap."""
    plans = [
        sim.plan("detect", sim.stage([0.5] * 30, fallback=[7], cpu_ms=20)),
        sim.plan("hand", sim.stage([1] * 9), sim.stage([2]), constraint_ms=500),
        sim.plan("slow", sim.stage([3] * 4), min_interval_ms=200),
        sim.plan("style", sim.stage([1] * 22), priority="high", continuous=False),
    ]
    world = sim.world(
        plans, scheduler="max-total", content="aging", world={"luminance": lambda dnn: 1e7}
    )
    world.request("style", 40, 500, 3000)
    world.at(4000, ProcessorLost("gpu"))
    world.run(5)
    records = [record(*call) for call in world.log]
    return world.coordinator.config(), json.loads(json.dumps(records))


def test_a_replay_gives_the_same_actions(recorded):
    config, records = recorded
    assert len(records) > 1000
    assert list(replay(json.loads(json.dumps(config)), records)) == []


def test_dnns_that_come_and_go_are_replayed_too(sim):
    world = sim.world([sim.plan("detect", sim.stage([1] * 9))], scheduler="max-min")
    config = world.coordinator.config()
    world.at(200, DnnAdded(sim.plan("detect:2", sim.stage([2] * 5))))
    world.at(400, DnnRemoved("detect"))
    world.at(600, RenderingStopped())
    world.run(1)
    records = json.loads(json.dumps([record(*call) for call in world.log]))
    assert {action["dnn"] for each in records for action in each["actions"]} == {
        "detect",
        "detect:2",
    }
    assert list(replay(config, records)) == []


def test_a_replay_shows_where_actions_differ(recorded):
    config, records = recorded
    changed = json.loads(json.dumps(records))
    index = next(i for i, entry in enumerate(changed) if entry["actions"])
    recorded_actions = changed[index]["actions"]
    changed[index]["actions"] = [{"type": "Drop", "job": 5, "dnn": "x", "reason": "made up"}]
    (difference,) = replay(config, changed)
    assert (difference.index, difference.recorded) == (index, (Drop(5, "x", "made up"),))
    assert [to_dict(action) for action in difference.replayed] == recorded_actions


def test_another_configuration_gives_other_actions(recorded):
    config, records = recorded
    assert next(replay({**config, "margin_ns": -5_000_000}, records), None) is not None


@pytest.mark.parametrize(
    "damage",
    [
        {"now_ns": "soon"},
        {"actions": None},
        {"event": {"type": 1}},
        {"event": {"type": "Drop", "job": 0, "dnn": "a", "reason": ""}},
        {"event": {"type": "FrameRendered", "frame": 0, "gap_end_ns": "later"}},
    ],
)
def test_a_damaged_record_is_one_clear_error(recorded, damage):
    config, records = recorded
    with pytest.raises(ConfigError, match=r"traced|record 0 of the trace is damaged"):
        list(replay(config, [{**records[0], **damage}]))


def test_a_coordinator_comes_back_from_its_configuration(recorded):
    config, _ = recorded
    assert Coordinator.from_config(config).config() == config


@pytest.mark.parametrize("broken", [{}, {"dnns": []}, {"dnns": [], "speed": 3}])
def test_a_broken_configuration_is_one_clear_error(broken):
    with pytest.raises(ConfigError, match="not a coordinator configuration"):
        Coordinator.from_config(broken)


def test_a_chunk_without_an_end_is_no_configuration(recorded):
    config = json.loads(json.dumps(recorded[0]))
    config["dnns"][0]["stages"][0]["chunks"] = [[3]]
    with pytest.raises(ConfigError, match="not a coordinator configuration"):
        Coordinator.from_config(config)


def test_values_survive_json(sim):
    plan = sim.plan("a", sim.stage([1, 2], chunks=[(0, 1), (1, 2)]), gamma=1.5)
    for value in (plan, FrameRendered(3, 17, 5), InputReady(1, 2, 0.5)):
        assert from_dict(json.loads(json.dumps(to_dict(value)))) == value


def test_numpy_numbers_become_plain_ones():
    numpy = pytest.importorskip("numpy")
    data = to_dict(InputReady(1, luminance_difference=numpy.float32(0.5)))
    assert json.dumps(data["luminance_difference"]) == "0.5"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"type": "Boom"}, "unknown traced type 'Boom'; choose one of: ChunkFinished"),
        ({"type": "InputReady"}, "a traced InputReady has the wrong fields"),
        ([], "not a traced event"),
    ],
)
def test_other_data_is_refused(data, says):
    with pytest.raises(ConfigError, match=says):
        from_dict(data)
