"""Precision by measurement: engines that are made up, whose networks take what the test says."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from onnx import helper

from heimdall.analyzer.precision import Comparison, compare, engine_for, load_for
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.errors import DeviceError
from heimdall.vocabulary.enums import Precision
from tests.networks import small_graph


class Halves(OnnxRuntimeEngine):
    """Has both precisions: in half, results are off by ``error``, and take ``seconds`` more or
    (below 0) less."""

    precisions = (Precision.FP32, Precision.FP16)

    def __init__(self, error: float, seconds: float, precision=Precision.FP32) -> None:
        super().__init__()
        self.error, self.seconds, self.precision = error, seconds, precision
        self.loads: list[Precision] = []

    def in_precision(self, precision):
        other = Halves(self.error, self.seconds, precision)
        other.loads = self.loads
        return other

    def load(self, graph, **more):
        self.loads.append(self.precision)
        network, half = super().load(graph, **more), self.precision == Precision.FP16
        infer, slow = network.infer, half == (self.seconds > 0)

        def changed(state, inputs):
            time.sleep(abs(self.seconds) if slow else 0)
            found = infer(state, inputs)
            return {name: array * (1 + self.error * half) for name, array in found.items()}

        network.loaded_as = self.precision  # type: ignore[attr-defined]
        network.infer = changed  # type: ignore[method-assign]
        return network


def chosen(engine, graph):
    found = engine_for(engine, graph, "auto")
    assert isinstance(found, Halves)
    return found.precision


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path))
    return tmp_path / "precision"


@pytest.fixture
def graph():
    nodes = [helper.make_node("Exp", ["x"], ["y"], name="exp")]
    return small_graph(nodes, {"x": (1, 4)}, {"y": (1, 4)})


@pytest.mark.parametrize(
    ("error", "seconds", "wanted"),
    [
        (1e-4, -0.05, Precision.FP16),  # faster and right
        (1e-4, +0.05, Precision.FP32),  # slower
        (0.1, -0.05, Precision.FP32),  # wrong
        (np.inf, -0.05, Precision.FP32),  # beyond 65504
    ],
)
def test_auto_takes_half_where_it_is_faster_and_right(graph, cache, error, seconds, wanted):
    engine = Halves(error, seconds)
    assert chosen(engine, graph) == wanted
    assert sorted(engine.loads) == [Precision.FP16, Precision.FP32]
    assert chosen(engine, graph) == wanted  # remembered
    assert len(engine.loads) == 2
    (file,) = cache.iterdir()
    assert set(json.loads(file.read_text())) == {"error", "time"}


@pytest.mark.parametrize(("seconds", "wanted"), [(-0.05, Precision.FP16), (0.05, Precision.FP32)])
def test_what_was_loaded_to_compare_is_what_runs(graph, seconds, wanted):
    engine = Halves(1e-4, seconds)
    chosen, network = load_for(engine, graph, "auto")
    assert engine.loads == [Precision.FP32, Precision.FP16]  # and the chosen one not again
    assert isinstance(chosen, Halves)
    assert chosen.precision == wanted
    assert network.loaded_as == wanted  # type: ignore[attr-defined]
    x = np.ones((1, 4), np.float32)
    assert network.infer(network.new_state(), {"x": x})["y"][0, 0] == pytest.approx(np.e, 1e-3)
    load_for(engine, graph, "auto")
    assert engine.loads[2:] == [wanted]  # remembered


@pytest.mark.parametrize("damaged", ["{", '{"error": "small", "time": 0.5}', '{"time": 0.5}'])
def test_what_was_remembered_and_is_damaged_is_measured_again(graph, cache, caplog, damaged):
    engine = Halves(1e-4, -0.05)
    engine_for(engine, graph, "auto")
    (file,) = cache.iterdir()
    file.write_text(damaged)
    assert chosen(engine, graph) == Precision.FP16
    assert "cannot be used" in caplog.text
    assert len(engine.loads) == 4


def test_the_difference_is_measured_and_told(graph):
    found = compare(Halves(0.125, +0.05), graph)
    assert found.error == pytest.approx(0.125, rel=1e-3)
    assert found.time > 1
    assert Comparison(1e-3, 0.5).precision == Precision.FP16


def test_where_there_is_one_precision_auto_is_that(graph):
    engine = OnnxRuntimeEngine()
    assert engine_for(engine, graph, "auto") is engine
    assert engine_for(engine, graph, "fp32") is engine
    with pytest.raises(DeviceError, match="has no fp16: use precision='fp32'"):
        engine_for(engine, graph, "fp16")
