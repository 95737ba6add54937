"""Choices of kernels: measured, kept in a file, used from the next load on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl import tuner
from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.tuning import Layer, Tuning
from heimdall.system import paths

TRAITS = Traits("cpu", 16, 1, 32)


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "shipped")


def layer(seed=0, offset=0, channels=32):
    random = np.random.default_rng(seed)
    weights = random.random((channels, channels, 1, 1), np.float32)
    place = Layout(channels, 8, 8, 16, offset=offset)
    return Layer(ConvSpec((1, 1)), place, place, weights, None)


def test_a_signature_holds_sizes_but_neither_weights_nor_places():
    assert layer().signature == layer(seed=1, offset=64).signature
    assert layer().signature != layer(channels=64).signature


def test_choices_come_back_from_the_file_of_the_same_device_and_driver():
    tuning = Tuning("A GPU", "1.0")
    assert tuning.lookup(layer()) is None
    assert tuning.version == ""
    tuning.set(layer(), {"tile": [1, 8, 1]})
    tuning.save()
    again = Tuning("A GPU", "1.0")
    assert again.lookup(layer()) == {"tile": [1, 8, 1]}
    assert again.version == tuning.version != ""
    assert Tuning("A GPU", "1.1").lookup(layer()) is None


def test_the_users_choices_go_before_shipped_ones():
    own = Tuning("A GPU", "1.0")
    own.set(layer(), {"tile": [1, 8, 1]})
    shipped = paths.PROFILES / "tuning" / own.path.name
    own.path = shipped
    own.save()
    assert Tuning("A GPU", "1.0").lookup(layer()) == {"tile": [1, 8, 1]}
    newer = Tuning("A GPU", "1.0")
    newer.set(layer(), {"tile": [1, 4, 1]})
    newer.save()
    assert Tuning("A GPU", "1.0").lookup(layer()) == {"tile": [1, 4, 1]}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema": 9, "choices": {}}',
        '{"schema": 1, "choices": {"x": {"tile": [0, 1, 1]}}}',
        '{"schema": 1, "choices": {"x": {"tile": "abc"}}}',
        '{"schema": 1, "choices": {"x": {"speed": 2}}}',
        '{"schema": 1, "choices": {"x": 3}}',
    ],
)
def test_a_damaged_file_is_reported_and_not_used(content, caplog):
    path = Tuning("A GPU", "1.0").path
    paths.replace_file(path, content.encode())
    tuning = Tuning("A GPU", "1.0")
    assert tuning.version == ""
    assert "cannot be used" in caplog.text


def test_a_choice_changes_the_tile():
    default = layer().plan(TRAITS)
    chosen = layer().plan(TRAITS, {"tile": [1, 4, 1], "winograd": False})
    assert default.launches != chosen.launches


def test_tuning_measures_each_kind_of_layer_and_results_stay_right(
    shared, build, monkeypatch, tmp_path
):
    random = np.random.default_rng(0)
    constants = {
        "w": random.standard_normal((32, 32, 3, 3)).astype(np.float32),
        "d": random.standard_normal((32, 1, 3, 3)).astype(np.float32),
    }
    pads = [1, 1, 1, 1]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="a", pads=pads),
        helper.make_node("Conv", ["a", "w"], ["b"], name="b", pads=pads),
        helper.make_node("Conv", ["b", "d"], ["y"], name="y", group=32, pads=pads),
    ]
    graph = build(nodes, {"x": (1, 32, 16, 16)}, constants)
    monkeypatch.setattr(tuner, "ROUNDS", 1)
    monkeypatch.setattr(tuner, "CLEARLY", 9.0)  # even a slower one is chosen
    engine = OpenCLEngine(keep_kernels=False)
    before = engine.describe()["version"]
    seen = []
    found = engine.tune(graph, lambda done, total: seen.append((done, total)))
    assert len(found) == 2
    assert seen[-1] == (2, 2)
    assert all(best <= default for default, best in found.values())
    assert engine.describe()["version"] != before
    content = json.loads(engine.tuning.path.read_text())
    assert set(content["choices"]) == set(found)
    inputs = {"x": random.standard_normal((1, 32, 16, 16)).astype(np.float32)}
    network = OpenCLEngine(keep_kernels=False).load(graph)  # reads the file
    result = shared.run(network, network.new_state(), inputs)
    assert shared.relative_error(result, shared.reference(graph, inputs)) <= 1e-4
