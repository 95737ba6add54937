"""Tuning in the background: who asks for it, that there is never more than one, how it ends."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from onnx import helper

from heimdall.engine.null import NullEngine
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.errors import DeviceError
from heimdall.runtime.execution.processors import open_processors
from heimdall.runtime.opening import background, building, tuning
from heimdall.runtime.opening.background import TUNING
from heimdall.runtime.opening.tuning import Task
from heimdall.system.softgpu import SoftwareGpu
from heimdall.vocabulary.enums import Confinement
from tests.networks import small_model

LIMIT_S = 280  # below the test's own, so that a child that hangs is named
ONE_CORE = SoftwareGpu((0,), (0,), Confinement.UNCONFINED)


@pytest.fixture(autouse=True)
def allowed(tmp_path, monkeypatch):
    """A cache of its own, and a machine and a user that let it run."""
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEIMDALL_TUNE", raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None, raising=False)


@pytest.fixture
def model(tmp_path) -> Path:
    """A file with a chain of convolutions, each of another size."""
    random = np.random.default_rng(0)
    sizes = [32, 48, 64, 80, 96, 112, 128]
    nodes = [
        helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"], name=f"c{i}")
        for i in range(len(sizes) - 1)
    ]
    weights = {
        f"w{i}": random.random((after, before, 1, 1), np.float32)
        for i, (before, after) in enumerate(itertools.pairwise(sizes))
    }
    x, y = {"x0": (1, sizes[0], 16, 16)}, {f"x{len(nodes)}": (1, sizes[-1], 16, 16)}
    path = tmp_path / "chain.onnx"
    onnx.save(small_model(nodes, x, y, weights), path)
    return path


def deployed(path, tuned=False, precision="fp32", forced=(), built=True) -> dict[str, Any]:
    """An app's one DNN, as far as ``wanted`` looks."""
    declared = SimpleNamespace(path=path, shapes={})
    return {
        "dnn": SimpleNamespace(
            dnn=SimpleNamespace(precision=precision, force_fallback=forced),
            plan=SimpleNamespace(built=built),
            pipeline=SimpleNamespace(networks=(declared,)),
            networks=lambda processor: [SimpleNamespace(tuned=tuned)],
        )
    }


def processors(software=ONE_CORE) -> Any:
    return SimpleNamespace(gpu=NullEngine(), software=software, profile_key="one core")


# --- who asks for it --------------------------------------------------------------------------


def test_networks_that_were_never_tuned_here_are_asked_for(model):
    task = tuning.wanted(processors(), deployed(model, precision="auto"), None)
    assert task.works == (building.Task(str(model), {}, "auto", []),)
    assert Task.from_json(json.dumps(asdict(task))) == task
    assert tuning.wanted(processors(software=None), deployed(model), None)  # a real GPU


@pytest.mark.parametrize(
    "changes",
    [{"tuned": True}, {"forced": ("Conv",)}, {"built": False}],
    ids=["tuned", "with fallback ops", "not on the GPU"],
)
def test_other_networks_are_not(model, changes):
    assert tuning.wanted(processors(), deployed(model, **changes), None) is None


def test_nor_is_it_done_where_a_software_gpu_has_several_cores(model):
    software = replace(ONE_CORE, gpu_cores=(0, 1))
    assert tuning.wanted(processors(software), deployed(model), None) is None


@pytest.mark.parametrize("name", ["HEIMDALL_TUNE", "CI"])
def test_who_declines_is_not_bothered(model, monkeypatch, name):
    monkeypatch.setenv(name, "off")
    assert tuning.wanted(processors(), deployed(model), None) is None


@pytest.mark.parametrize(("plugged", "asked"), [(False, False), (True, True)])
def test_a_battery_is_spared(model, monkeypatch, plugged, asked):
    battery = SimpleNamespace(power_plugged=plugged)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    assert bool(tuning.wanted(processors(), deployed(model), None)) is asked


def test_a_network_whose_tuning_never_ends_well_is_given_up(model):
    task = tuning.wanted(processors(), deployed(model), None)
    for _ in range(tuning.TRIES):
        assert tuning.wanted(processors(), deployed(model), None)
        tuning.count_try(task.key(task.works[0]), 1)
    assert tuning.wanted(processors(), deployed(model), None) is None
    tuning.count_try(task.key(task.works[0]), -1)
    assert tuning.wanted(processors(), deployed(model), None)


# --- starting a child -------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    """The command lines of children, which are not started."""
    found: list[list[str]] = []

    def start(command, **options):
        found.append(command)
        return SimpleNamespace()

    monkeypatch.setattr(subprocess, "Popen", start)
    return found


def test_one_child_is_started_and_one_line_says_so(model, started, caplog):
    caplog.set_level("INFO", logger="heimdall.runtime.opening.tuning")
    task = tuning.wanted(processors(), deployed(model), None)
    tuning.start(task)
    (command,) = started
    assert command[:-1] == list(tuning.CHILD)
    assert Task.from_json(command[-1]) == task
    (line,) = caplog.messages
    assert "HEIMDALL_TUNE=off" in line
    assert "background.log" in line


def test_none_is_started_while_one_is_at_work(model, started, caplog):
    caplog.set_level("INFO", logger="heimdall.runtime.opening.tuning")
    task = tuning.wanted(processors(), deployed(model), None)
    with background.alone(TUNING) as free:
        assert free
        tuning.start(task)
    assert started == []
    assert caplog.messages == []
    tuning.start(task)
    assert len(started) == 1


def test_none_is_started_whose_findings_would_not_last(model, started, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "file"))
    tuning.start(tuning.wanted(processors(), deployed(model), None))
    assert started == []


def test_opening_processors_interrupts_who_was_asked_before(model):
    with background.alone(TUNING):
        pass  # there was one
    task = tuning.wanted(processors(), deployed(model), None)
    assert not background.interrupted(TUNING, task.asked_ns)
    with open_processors(NullEngine(), ONE_CORE):
        assert background.interrupted(TUNING, task.asked_ns)
    later = replace(task, asked_ns=time.time_ns() + 1_000_000_000)
    assert not background.interrupted(TUNING, later.asked_ns)


# --- the child, for real ----------------------------------------------------------------------


@pytest.fixture
def device(run_python) -> str:
    """The OpenCL device as a child sees it, with one compute unit."""
    try:
        return OpenCLEngine(keep_kernels=False).describe()["device"]
    except DeviceError as error:
        pytest.skip(f"no OpenCL here: {error}")


# A child that takes turns with what else runs: at the lowest priority, which has a test of its own,
# a machine that is busy all the time would never let it end.
IN_TURN = """
import sys
from heimdall.runtime.opening import tuning_child
tuning_child.in_background = tuning_child.behind = lambda *_: None
sys.exit(tuning_child.main())
"""


def child(
    task: Task, program: Sequence[str] = (sys.executable, "-c", IN_TURN)
) -> subprocess.Popen[str]:
    command = [*program, json.dumps(asdict(task))]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ})


def choices(tmp_path) -> dict[str, Any]:
    files = [
        json.loads(path.read_text())
        for path in (tmp_path / "cache" / "tuning").glob("*.json")
        if path.name != "tries.json"
    ]
    return files[0]["choices"] if files else {}


def task_for(device, *files) -> Task:
    works = tuple(building.Task(str(path), {}, "fp32", []) for path in files)
    return Task(None, device, works, time.time_ns(), "tuned")


def test_a_child_tunes_what_it_is_given_and_says_what_came_of_it(model, device, tmp_path):
    missing = tmp_path / "none.onnx"
    task = task_for(device, missing, model)
    said = child(task).communicate(timeout=LIMIT_S)[1]
    assert "none.onnx: cannot read" in said
    assert "chain: 6 kinds of layers" in said
    assert "done" in said.splitlines()[-1]
    assert len(choices(tmp_path)) == 6
    assert tuning.tries() == {task.key(task.works[0]): 1}
    # the next start finds it built and measured as it is now
    assert list((tmp_path / "cache" / "kernels").glob("*.bin"))
    assert list((tmp_path / "cache" / "profiles").rglob("chain-*.json"))


def test_a_child_does_nothing_on_another_device(model, device, tmp_path):
    said = child(task_for("Another GPU", model)).communicate(timeout=LIMIT_S)[1]
    assert "instead of Another GPU" in said
    assert choices(tmp_path) == {}


def test_a_second_child_ends_at_once(model, device, tmp_path):
    with background.alone(TUNING):
        said = child(task_for(device, model), tuning.CHILD).communicate(timeout=LIMIT_S)[1]
    assert "another one is at work" in said
    assert choices(tmp_path) == {}


def test_a_child_ends_when_an_app_starts_and_leaves_whole_files(model, device, tmp_path):
    task = task_for(device, model)
    running = child(task)
    while not tuning.tries() and running.poll() is None:
        time.sleep(0.02)
    while not choices(tmp_path) and running.poll() is None:
        time.sleep(0.02)
    background.interrupt(TUNING)
    said = running.communicate(timeout=LIMIT_S)[1]
    assert running.returncode == 0
    if "done" not in said:  # it was quicker
        assert "interrupted" in said
        assert 1 <= len(choices(tmp_path)) <= 6
    assert tuning.tries() == {}
    with background.alone(TUNING) as free:
        assert free


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of threads are Linux's")
def test_a_child_has_the_lowest_priority_and_one_core(run_python):
    found = run_python(
        """
        import json, os
        from heimdall.runtime.opening.tuning_child import _settle
        core = _settle()
        policy = os.sched_getscheduler(0)
        print(json.dumps([core, sorted(os.sched_getaffinity(0)), policy, os.nice(0)]))
        """
    )
    core, cores, policy, nice = found
    assert cores == [core]
    assert policy == os.SCHED_IDLE
    assert nice == 19
