"""Scenarios of requests on this machine."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import pytest
from onnx import helper, save

from heimdall.engine.null import NullEngine
from heimdall.errors import ConfigError, ModelError
from heimdall.graph.graph import Graph
from heimdall.lab.bench.live_requests import at_load, with_files
from heimdall.lab.bench.runner import compare
from heimdall.lab.bench.scenario import Scenario, load_scenario
from tests.engine.networks_with_exits import BACKBONE, HEADS, declared, model
from tests.networks import small_model

SCENARIO = """
title = "Two models"
requests = 30
load = 0.2
[models.one]
model = "net.onnx"
event = { process = "poisson", rate_hz = 20 }
slo_multiplier = 4
[models.other]
event = { process = "poisson", rate_hz = 20 }
[models.last]
after = "other"
model = "net.onnx"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    import numpy as np

    nodes = [helper.make_node("Mul", ["x", "two"], ["v"]), helper.make_node("Relu", ["v"], ["y"])]
    two = np.asarray([2], np.float32)
    save(small_model(nodes, {"x": [1, 8]}, {"y": [1, 8]}, {"two": two}), tmp_path / "net.onnx")
    path = tmp_path / "mine.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def scenario(file: Path) -> Scenario:
    return load_scenario(str(file))


def test_a_file_is_found_beside_the_scenario(scenario, tmp_path):
    assert scenario.models["one"].model == str(tmp_path / "net.onnx")


def test_models_without_a_file_are_left_out_with_all_that_comes_after_them(scenario, caplog):
    with caplog.at_level(logging.WARNING):
        kept, files = with_files(scenario, {})
    assert list(kept.models) == list(files) == ["one"]
    assert "left out, without a model file: other, last" in caplog.text


def test_a_file_may_be_given(scenario, tmp_path):
    kept, files = with_files(scenario, {"other": tmp_path / "net.onnx"})
    assert list(kept.models) == list(files) == ["one", "other", "last"]


def test_files_that_make_no_sense_are_refused(scenario, tmp_path):
    with pytest.raises(ConfigError, match=r"unknown model 'two'; .*last, one, other"):
        with_files(scenario, {"two": tmp_path / "net.onnx"})
    models = {"other": scenario.models["other"]}
    with pytest.raises(ConfigError, match=r"no model has a file.*--model NAME=FILE"):
        with_files(scenario.model_copy(update={"models": models}), {})


def test_streams_are_as_fast_as_the_load_says(scenario):
    alone, _ = with_files(scenario, {})
    changed, faster = at_load(alone, {"one": 5e6})  # 20 a second of 5 ms are a tenth
    assert faster == pytest.approx(2)
    event = changed.models["one"].event
    assert event is not None
    assert event.rate_hz == pytest.approx(40)
    same, faster = at_load(alone.model_copy(update={"load": None}), {"one": 5e6})
    assert (same.models, faster) == (alone.models, 1.0)


def test_systems_are_compared_on_the_same_trace(file):
    options: dict[str, Any] = {"device": NullEngine(), "processors": ["gpu"]}
    file.write_text(SCENARIO.replace("load = 0.2", ""), encoding="utf-8")
    found = compare(str(file), "fcfs,response-ratio", runs=2, **options)
    assert found["seeds"] == [0, 1]
    assert list(found["systems"]) == ["fcfs", "response-ratio"]
    assert found["failures"] == []
    for runs in found["runs"].values():
        for run in runs:
            one = run["requests"]["one"]
            assert one["finished"] == one["submitted"] == 30
            assert run["processors"]["gpu"]["busy_s"] >= 0
    assert found["over_runs"]["fcfs"]["throughput_hz"]["n"] == 2


def test_networks_are_gone_when_the_next_system_runs(file):
    """Though objects that refer to one another hold them: a VGG-19 for each system is too much."""
    options: dict[str, Any] = {"device": NullEngine(), "processors": ["gpu"]}
    gc.collect()
    before = sum(isinstance(each, Graph) for each in gc.get_objects())
    gc.disable()  # it might happen to look by itself
    try:
        compare(str(file), "fcfs", **options)
        after = sum(isinstance(each, Graph) for each in gc.get_objects())
    finally:
        gc.enable()
    assert after == before


@pytest.fixture
def early(tmp_path: Path) -> Path:
    """A model with three exits, of which only the first can be there in time."""
    save(
        model([*BACKBONE, *HEADS[0], *HEADS[1]], ["y3", "y1", "y2"], declared()),
        tmp_path / "e.onnx",
    )
    path = tmp_path / "early.toml"
    path.write_text(
        """
title = "Early exits"
requests = 12
[models.kind]
model = "e.onnx"
event = { process = "periodic", rate_hz = 10 }
slo_ms = 60
""",
        encoding="utf-8",
    )
    return path


def test_exits_are_taken_where_the_whole_network_would_be_late(early):
    """Ops of 8 ms: the first exit takes 5 of them, the second 12, the whole network 14."""
    options: dict[str, Any] = {"device": NullEngine(op_ns=8_000_000, sleep=True)}
    systems = "edf-exits,edf-exits-noexits"
    found = compare(str(early), systems, processors=["gpu"], **options)
    assert found["failures"] == []
    kind, without = (run["requests"]["kind"] for run in found["systems"].values())
    assert set(kind["exits"]) == {"first"}
    assert kind["exits"]["first"] == kind["finished"] > 0
    late = kind["violations"]["slo"]
    assert kind["accuracy"] == pytest.approx((1 - late) * 0.5 / 0.9, abs=1e-4)
    assert set(without["exits"]) <= {"whole"}
    assert without["accuracy"] == 0
    assert kind["preempted"] >= 0


@pytest.mark.parametrize(
    ("systems", "options", "message"),
    [
        ("render-first", {}, "render-first hands over parts of networks: .*multithread"),
        ("fifo", {}, "unknown system 'fifo'"),
        ("fcfs", {"seconds": 0}, "seconds=0: must be above 0"),
        ("fcfs", {"runs": 0}, "runs=0: must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(file, systems, options, message):
    with pytest.raises(ConfigError, match=message):
        compare(str(file), systems, **options)


FRAMES = """
title = "Frames"
seconds = 0.5
drop_late = true
[models.first]
model = "net.onnx"
event = { process = "periodic", rate_hz = 20, phase = 0 }
deadline = "period"
[models.then]
after = "first"
model = "net.onnx"
deadline = "period"
"""


def test_frames_have_a_score_with_a_coordinator_and_without(file):
    file.write_text(FRAMES, encoding="utf-8")
    found = compare(
        str(file),
        "fcfs,multithread,edf,multithread-onnxruntime",
        device=NullEngine(),
        processors=["gpu"],
    )
    assert found["failures"] == []
    for run in found["systems"].values():
        submitted = {name: each["submitted"] for name, each in run["requests"].items()}
        assert submitted == {"first": 10, "then": 10}
        assert run["score"]["models"].keys() == {"first", "then"}
        assert 0 <= run["score"]["overall"] <= 100
    assert found["systems"]["multithread"]["processors"] == {}


def test_other_scenarios_have_no_score(file):
    found = compare(
        str(file),
        "fcfs",
        files={"other": file.parent / "net.onnx"},
        device=NullEngine(),
        processors=["gpu"],
    )
    assert found["systems"]["fcfs"]["score"] is None


SHAPES = {"one:x": (1, 8), "one:by": 2}


@pytest.fixture
def free(file: Path) -> Path:
    """The same with a model of any width, and a factor that is asked for."""
    nodes = [helper.make_node("Mul", ["x", "by"], ["v"]), helper.make_node("Relu", ["v"], ["y"])]
    inputs: dict[str, list[int | str]] = {"x": [1, "width"], "by": [1]}
    save(small_model(nodes, inputs, {"y": [1, "width"]}), file.parent / "net.onnx")
    return file


def test_what_a_model_leaves_free_may_be_given(free):
    options: dict[str, Any] = {"device": NullEngine(), "processors": ["gpu"]}
    found = compare(str(free), "fcfs,multithread", shapes=SHAPES, **options)
    assert found["failures"] == []
    for run in found["systems"].values():
        assert run["requests"]["one"]["finished"] == 30
    with pytest.raises(ModelError, match="choose a shape"):
        compare(str(free), "fcfs", **options)


@pytest.mark.parametrize("name", ["x", "two:x"])
def test_a_shape_of_no_model_is_refused(free, name):
    with pytest.raises(ConfigError, match=rf"--shape {name} .*models: last, one, other"):
        compare(str(free), "fcfs", shapes={name: (1, 8)}, device=NullEngine(), processors=["gpu"])


def test_each_systems_own_process_is_told_of_shapes(free, monkeypatch):
    commands: list[str] = []

    def run(command, hear):
        commands.append(" ".join(command))
        return "", 2

    monkeypatch.setattr("heimdall.lab.bench.apart.run_apart", run)
    compare(str(free), "max-min,max-total", shapes=SHAPES, seconds=1.0, fps=30.0)
    assert len(commands) == 2
    for command in commands:
        assert "--shape one:x=1x8 --value one:by=2" in command
