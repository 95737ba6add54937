"""Actors from files: what can be wrong with them, and those that are bundled."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

import onnx
import pytest

from heimdall.cli import main
from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.serving import prepare_requests
from heimdall.lab.simulator.together.actors import ACTORS, KEY, OnnxActor, OnnxStager, actor_path
from heimdall.lab.simulator.together.concurrent_stages import best_cut
from heimdall.lab.simulator.together.device import load_together
from heimdall.lab.simulator.together.policies import task_of
from tests.lab.simulator.together.test_concurrent_stages import combined

SCENARIOS = ("top-mixed", "top-240", "top-inception-v3", "top-resnet-50", "top-squeezenet")
SQUEEZE = "SqueezeNet"


@pytest.fixture
def simulate(tmp_path):
    """The scenario top-squeezenet with another actor, or device, for a moment."""

    def run(actor, device=None):
        text = Path("heimdall/lab/scenarios/top-squeezenet.toml").read_text()
        text = re.sub(r'actor = ".*"', f'actor = "{actor}"', text)
        (tmp_path / "mine.toml").write_text(text)
        scenario = load_scenario(str(tmp_path / "mine.toml"))
        return prepare_requests(scenario, device, parse_system("top"), seconds=0.1).run(0)

    return run


def test_an_actor_that_is_missing(simulate):
    with pytest.raises(ConfigError, match=r"no actor is called 'unknown' \(there are: .*top-mix"):
        simulate("unknown")
    with pytest.raises(ConfigError, match=r"none\.onnx cannot be read: .*heimdall train-top"):
        simulate("none.onnx")


def test_an_actor_that_is_corrupt(simulate, tmp_path):
    whole = actor_path("top-squeezenet").read_bytes()
    (tmp_path / "half.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match=r"half\.onnx is damaged, or no ONNX file"):
        simulate("half.onnx")


def test_a_network_that_is_no_actor(simulate, tmp_path):
    model = onnx.load(actor_path("top-squeezenet"))
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "plain.onnx")
    with pytest.raises(ConfigError, match=f"does not say what it is for: it lacks '{KEY}'"):
        simulate("plain.onnx")


def test_an_actor_does_not_cut_blocks():
    with pytest.raises(ConfigError, match=r"top-squeezenet\.onnx does not choose among endings"):
        OnnxStager(actor_path("top-squeezenet"))


def test_an_actor_for_other_models_or_another_device(simulate):
    with pytest.raises(ConfigError, match=r"trained for ResNet-50 on 'top-a100', not for Squeeze"):
        simulate("top-resnet-50")
    with pytest.raises(ConfigError, match=r"for SqueezeNet on 'top-a100', not .* on 'top-tx2'"):
        simulate("top-squeezenet", "top-tx2")


def test_a_device_that_runs_one_operator_at_a_time():
    with pytest.raises(ConfigError, match=r"'jetson-nano' runs one operator at a time"):
        load_together("jetson-nano")


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_bundled_actor_is_for_its_scenario_and_says_how_it_came_about(name):
    scenario = load_scenario(name)
    assert scenario.actor == name
    actor = OnnxActor(actor_path(name))
    references = {model: scenario.reference(model) for model in scenario.models}
    task = task_of(load_together(scenario.device), references)
    actor.check(tuple(references.values()), task.blocks, scenario.device)
    assert actor.about.steps > 0
    assert (ACTORS / actor.about.stages).is_file()
    numbers = actor([0.0] * actor.task.state_size)
    assert len(numbers) == len(task.models) + sum(task.blocks)
    assert all(0 <= each <= 1 for each in numbers)


def test_the_bundled_files_are_small_and_in_the_notice():
    files = sorted(ACTORS.glob("*.onnx"))
    assert {file.stem for file in files} == {*SCENARIOS, "stages-top-a100"}
    assert sum(file.stat().st_size for file in files) <= 200 * 1024
    notice = Path("NOTICE.md").read_text()
    for file in files:
        assert hashlib.sha256(file.read_bytes()).hexdigest() in notice


def test_stages_are_cut_far_sooner_than_by_dynamic_programming_and_nearly_as_well():
    stager = OnnxStager(ACTORS / "stages-top-a100.onnx")
    made = combined((SQUEEZE, 5), (SQUEEZE, 6), (SQUEEZE, 8), (SQUEEZE, 10))
    began = time.process_time()
    best = best_cut(made)
    searched_s = time.process_time() - began
    began = time.process_time()
    _, ns = stager.cut(made)
    cut_s = time.process_time() - began
    assert best is not None
    assert ns <= 1.1 * best[1]
    assert searched_s > 10 * cut_s


def test_the_command_without_pytorch(monkeypatch, capsys):
    import builtins

    real = builtins.__import__

    def without(name, *args, **options):
        if name == "torch":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SystemExit):
        main(["train-top", "top-squeezenet"])
    assert "heimdall-ar[learn]" in capsys.readouterr().err
