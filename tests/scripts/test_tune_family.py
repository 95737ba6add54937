"""The script that writes a family's table: what was measured here, used where nothing was."""

import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl import tuner
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import ConfigError, DeviceError
from heimdall.system import paths
from tests.networks import small_graph

script = importlib.import_module("scripts.tune_family")


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "shipped")
    monkeypatch.setattr(tuner, "CLEARLY", 99.0)  # even a slower one is chosen


@pytest.fixture(scope="module")
def graph():
    weights = np.random.default_rng(0).standard_normal((32, 32, 1, 1)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="y")]
    shape = (1, 32, 16, 16)
    return small_graph(nodes, {"x": shape}, {"y": shape}, {"w": weights})


def open_engine(traits=None):
    try:
        return OpenCLEngine(traits=traits, keep_kernels=False)
    except DeviceError as error:
        pytest.skip(f"no OpenCL here: {error}")


def test_a_table_is_written_and_used_by_a_machine_of_the_family(
    graph, tmp_path, monkeypatch, capsys
):
    traits = Traits("cpu", 8, 1, 16)
    path = script.tune_family(open_engine(traits), [graph], 1, ["fp32"])
    assert path == tmp_path / "shipped" / "tuning" / "avx2-1.json"
    content = json.loads(path.read_text())
    assert content["layers"] == 1
    assert content["rounds"] == 1
    assert {"machine", "device", "driver", "date", "networks"} <= set(content)
    (tuned,) = content["choices"].values()
    assert "of 1 layers" in capsys.readouterr().out
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "another machine"))
    (layer,) = open_engine(traits).load(graph)._compiled.convolutions
    assert open_engine(traits).tuning.lookup(layer) == tuned
    several = replace(traits, compute_units=2)
    assert open_engine(several).tuning.lookup(layer) is None


def test_a_device_of_no_family_has_no_table(graph):
    with pytest.raises(ConfigError, match="belongs to no family"):
        script.tune_family(open_engine(Traits("cpu", 4, 1, 16)), [graph], 1, ["fp32"])


def test_an_engine_without_a_choice_of_kernels_is_one_error(monkeypatch, capsys):
    arguments = ["tune_family.py", "selfie", "--device", "onnxruntime"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert script.main() == 2
    assert "has no kernels to choose from" in capsys.readouterr().err
