"""The parts for real, on a small app: the engine, chunks, preemption, a run, and the device that
comes of it. Figures are whatever this machine gives; that they fit together is tested."""

from __future__ import annotations

import json
from typing import Any

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench import loads
from heimdall.lab.bench.judge import engines, networks
from heimdall.lab.bench.judge.networks import bundled, profile_networks
from heimdall.lab.bench.judge.preemption import measure_preemption
from heimdall.lab.bench.judge.programme import SCHEMA, SHARES, Apart
from heimdall.lab.bench.judge.toml import as_toml
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.cli.schemas import json_schema
from heimdall.lab.simulator.devices import open_device
from heimdall.lab.simulator.simulate import simulate
from tests.docs.json_schemas import wrong

APP = """
from heimdall import DNN, App


class Tiny(App):
    size = (320, 180)
    dnns = (DNN("segment", model="selfie", rate_hz=1), DNN("detect", model="nanodet"))
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.py").write_text(APP)
    path = folder / "tiny.toml"
    path.write_text('app = "tiny.py"\n')
    return str(path)


@pytest.fixture
def selfie_alone(monkeypatch):
    monkeypatch.setattr(engines, "bundled", lambda: ["selfie"])


def as_told(found: Any, kind: str) -> list[str]:
    """What is not as the schema of ``heimdall measure --json`` says of this part."""
    kinds = json_schema("measure")["$defs"]
    return wrong({"$defs": kinds, **kinds[kind]}, json.loads(json.dumps(found)))


def test_the_catalogues_own_networks_are_compared():
    assert {"nanodet", "selfie", "hand", "ppocr"} <= set(bundled())


def test_our_engine_is_compared_with_onnxruntime(selfie_alone):
    found = engines.compare_engines(None, 0.1)
    assert as_told(found, "ComparedEngine") == []
    network = found["networks"]["seg_selfie_256"]
    ratio = network["onnxruntime_ms"] / network["ms"]
    assert network["onnxruntime_ratio"] == pytest.approx(ratio, rel=0.01)
    assert found["geometric_mean"]["onnxruntime"] == pytest.approx(ratio, rel=0.01)
    assert found["cores"] >= 1


def test_cutting_costs_something_a_chunk(selfie_alone):
    found = engines.cost_of_cutting(None, 0.3)
    assert as_told(found, "Cutting") == []
    assert found["networks"]["seg_selfie_256"]["chunks"] > 4
    assert found["ratio"] > 0.5


def test_a_network_that_runs_yields(scenario):
    found = measure_preemption(None, 0.1, scenario=scenario, dnn="detect")
    assert as_told(found, "Preemption") == []
    assert found["times"] >= 10
    assert 0 < found["gpu_free_ms"]["p50"] < found["frame_drawn_ms"]["p50"]


def test_loads_that_this_machine_cannot_have_are_left_out_and_told(scenario, monkeypatch, caplog):
    """On a large GPU no input size takes as long as on a phone's."""

    def fit(asked, *args):
        if asked.name == "shopping-phone":
            raise ConfigError("no input size takes 95 ms alone on this machine")
        return loads.fit(asked, *args)

    monkeypatch.setattr(networks, "fit", fit)
    profile = networks.profile_networks(None, ["shopping-phone", scenario], [])
    assert len(profile["networks"]) == 2
    assert "without the networks of shopping-phone: no input size takes 95 ms" in caplog.text


def test_a_run_and_profiles_become_a_device_to_simulate(scenario, tmp_path):
    arguments = {"device": None, "fps": 30, "size": (320, 180), "seconds": 2.0}
    came = Apart()("scenario", {**arguments, "scenario": scenario}, lambda *step: None)
    shown = {key: value for key, value in came["figures"].items() if key != "power_w"}
    assert as_told(shown, "MeasuredRun") == []
    assert came["figures"]["dnns"]["segment"]["inferences"] > 0
    profile = profile_networks(None, [scenario], [])
    row: dict[str, dict] = {part: {} for part in ("machine", *SHARES)}
    path = tmp_path / "this.toml"
    content = {"schema": SCHEMA, "title": "this", **row}
    path.write_text(as_toml({**content, "profile": {**profile, "runs": [came["run"]]}}))
    summary = simulate(scenario, str(path), "max-total", seconds=5)
    assert summary["device"]["mode"] == "simulated this"
    assert all(dnn["inferences"] for dnn in summary["dnns"].values())
    machine, _ = open_device(load_scenario(scenario), str(path))
    drawn_us = came["run"]["render_us"]
    assert machine.render_ns == pytest.approx(1e3 * drawn_us[len(drawn_us) // 2])
