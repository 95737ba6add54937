"""TOP on the simulated A100 (docs/laboratory/top.md: five seeds of ten seconds)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heimdall.coordinator.replay import replay
from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.serving import prepare_requests
from heimdall.lab.simulator.together.policies import remade
from heimdall.runtime.telemetry.trace import read_recording


def simulate(scenario, system, seconds=2.0, **options):
    experiment = prepare_requests(
        load_scenario(scenario), None, parse_system(system), seconds=seconds
    )
    return experiment.run(0, **options)


@pytest.fixture(scope="module")
def mixed():
    names = ("top", "static-plan", "static-plan-free")
    return {name: simulate("top-mixed", name) for name in names}


def test_several_models_are_served_half_again_as_fast_as_by_a_static_plan(mixed):
    assert mixed["top"]["throughput_hz"] >= 1.5 * mixed["static-plan"]["throughput_hz"]
    assert mixed["top"]["throughput_hz"] >= 1.1 * mixed["static-plan-free"]["throughput_hz"]
    assert mixed["top"]["together"]["occupancy"] > mixed["static-plan"]["together"]["occupancy"]


def test_its_queues_stay_equal_where_those_of_a_static_plan_do_not(mixed):
    last = {name: run["together"]["queue_variance"]["last"] for name, run in mixed.items()}
    assert last["top"] < 100  # its threshold
    assert last["static-plan"] > 10_000
    assert last["static-plan-free"] > 2_000


@pytest.mark.parametrize("scenario", ["top-resnet-50", "top-squeezenet", "top-inception-v3"])
def test_one_model_is_served_faster_than_one_request_after_the_other(scenario):
    ours, theirs = (simulate(scenario, system, 1.0) for system in ("top", "sequential"))
    assert ours["throughput_hz"] >= 1.14 * theirs["throughput_hz"]


def test_what_waits_at_the_end_is_told(mixed):
    (model,) = mixed["static-plan"]["requests"].keys() - {"inception", "resnet"}
    figures = mixed["static-plan"]["requests"][model]
    assert figures["submitted"] == figures["finished"] + figures["dropped"]
    assert figures["reasons"] == {"waited when it ended": figures["dropped"]}


@pytest.mark.parametrize("system", ["top", "static-plan"])
def test_a_recorded_run_is_replayed_as_it_was(system, tmp_path):
    simulate("top-mixed", system, 0.2, trace=tmp_path / "run.json")
    recording = read_recording(tmp_path / "run.json")
    assert any(
        action["type"] == "RunTogether" for record in recording.records
        for action in record["actions"]
    )  # fmt: skip
    assert not list(replay(recording.config, recording.records, remade(recording.config)))


def test_a_replay_needs_the_actor_of_the_recorded_run(tmp_path):
    simulate("top-squeezenet", "top", 0.1, trace=tmp_path / "run.json")
    config = json.loads(json.dumps(read_recording(tmp_path / "run.json").config))
    config["policy"]["actor"] = "0" * 64
    with pytest.raises(ConfigError, match="no bundled actor has the sha256 000"):
        remade(config)
    other = Path("assets/models/top/top-squeezenet.onnx")
    with pytest.raises(ConfigError, match="recorded was scheduler 'top'"):
        list(replay(config, [], remade(config, other)))
