"""Networks built by children while their DNNs run on the CPU: handed over, or left there."""

from __future__ import annotations

import json
import sys
import textwrap
import threading
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper

from heimdall.analyzer.partition import Cut
from heimdall.analyzer.profile import NetworkProfile, ProfileKey
from heimdall.analyzer.profile_file import to_json
from heimdall.analyzer.profiler import measure_ops
from heimdall.app import DNN
from heimdall.engine.null import NullEngine
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.errors import DeviceError
from heimdall.graph.graph import load_graph
from heimdall.models.base import Network
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.opening import building, building_child
from heimdall.runtime.opening.building import KEEP, Building
from heimdall.vocabulary.processors import CPU, GPU
from tests.networks import small_model
from tests.runtime.execution.test_deployment import GRAPHS, Two

LIMIT_S = 240  # against hanging only: children get what a busy machine leaves


class Gpu(NullEngine):
    """Asks for binaries last."""

    saves_later = True


class Planning(Gpu):
    """Whose ops depend on more than the graph."""

    units = 3

    @property
    def choices(self):
        return {"a layer": {"tile": [1, 8, 1]}}


class Refused(Gpu):
    def completed(self, stop=None):
        raise DeviceError("it hangs")


@pytest.fixture
def graphs():
    return [GRAPHS[0], GRAPHS[0]]


def test_a_child_that_cannot_use_its_parents_cache_says_so_at_once(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "file"))
    said: list[str] = []
    place = building.BuildTarget(None, "", "", 1, {})
    task = building.Task("none.onnx", {}, "fp32", [])
    with pytest.raises(DeviceError, match="is not used: it cannot be written"):
        building_child.build(Gpu(), place, task, said.append)
    assert said == []


def profile_of(graph) -> str:
    """What a child would report."""
    gpu, cpu = NullEngine(op_ns=lambda op: 1000, chunk_cost_ns=0), NullEngine(CPU)
    network = gpu.load(graph)
    key = ProfileKey.of(graph, gpu, cpu)
    measured = measure_ops(network)
    return to_json(NetworkProfile.from_measurement(key, network, measured, 5000)).decode()


class World:
    """What a run would be told."""

    def __init__(self, gpu, graphs, names=("a",), pipeline=Two, software=None):
        cpu = NullEngine(CPU)
        self.deployments = [
            Deployment(DNN(name=name, model=pipeline()), pipeline(), graphs, cpu) for name in names
        ]
        for each in self.deployments:
            each.begin_on_cpu()
        processors = SimpleNamespace(
            gpu=gpu, cpu=cpu, software=software, cores=(0, 1), profile_key="hardware"
        )
        self.built: list[str] = []
        self.failed: list[tuple[str, str]] = []
        self.pauses = 0
        self.frames_have_ended, self.waits = False, threading.Event()
        self.building = Building(self.deployments, processors, None, Cut(10_000_000))  # type: ignore[arg-type]

    def start(self):
        self.building.start(
            self._pause,
            lambda each: self.built.append(each.dnn.name),
            lambda each, why: self.failed.append((each.dnn.name, why)),
        )

    def _pause(self, ended):
        self.pauses += 1
        if self.frames_have_ended:
            self.waits.set()
            ended.wait(LIMIT_S)

    def wait(self):
        assert self.building.over.wait(LIMIT_S)


@pytest.fixture
def play(monkeypatch, tmp_path, graphs):
    """``play(code)``: children run ``code``, which has ``ask``, ``report`` and ``profile``."""
    worlds = []

    def play(code, gpu=None, names=("a",)):
        (tmp_path / "profile").write_text(profile_of(graphs[0]))
        begin = f"""
        import json, os, sys, time
        from pathlib import Path
        from heimdall.system.child import ask, report
        folder = Path({str(tmp_path)!r})
        profile = (folder / "profile").read_text()
        place = json.loads(ask() or "null")  # nothing, where it is ended at once
        """
        script = textwrap.dedent(begin) + textwrap.dedent(code)
        monkeypatch.setattr(building, "CHILD", (sys.executable, "-c", script))
        world = World(gpu or Gpu(), graphs, names)
        worlds.append(world)
        world.start()
        return world

    yield play
    for world in worlds:
        world.building.close()


WORKS = f"""
report({{"step": "opening"}})
while (line := ask()) is not None:
    if line == {KEEP!r}:
        (folder / f"kept{{os.getpid()}}").touch()
    else:
        assert json.loads(line)["path"].endswith("none.onnx")
        report({{"step": "compiling 1/2"}})
        report({{"found": "profile", "value": profile}})
report({{"done": True}})
"""


def test_the_time_left_is_told_from_what_the_built_ones_took(graphs, monkeypatch):
    world = World(Gpu(), graphs, ("a", "b"))
    told = world.building
    assert told.message == "building networks for the GPU: 0 of 4"
    now_s = [100.0]
    monkeypatch.setattr(building.time, "monotonic", lambda: now_s[0])
    told._began_s = 100.0
    now_s[0] = 120.0
    told._count()
    assert told.message == "building networks for the GPU: 1 of 4, about 60 s left"
    now_s[0] = 174.0
    assert told.message.endswith("1 of 4, about 6 s left")
    now_s[0] = 300.0  # longer than that: it is not known
    assert told.message.endswith("1 of 4")
    now_s[0] = 320.0
    told._count()
    assert told.message.endswith("2 of 4, about 220 s left")
    told.close()


def test_a_dnn_is_handed_over_when_all_its_networks_are_there(play, tmp_path):
    world = play(WORKS, names=("a", "b"))
    assert not any(each.plan.built for each in world.deployments)
    world.wait()
    assert sorted(world.built) == ["a", "b"]
    assert world.failed == []
    assert world.pauses > 0
    for each in world.deployments:
        assert each.plan.built
        assert len(each.networks(GPU)) == 2
        assert sum(each.plan.stages[0].op_ns) > 0
        assert each.plan.stages[0].cpu_ns == 5000
    assert world.building.progress == (4, 4)
    assert world.building.message == ""
    while not list(tmp_path.glob("kept*")):  # binaries come last; else this runs out of time
        threading.Event().wait(0.01)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("os._exit(3)", "it ended the process with status 3"),
        ("print('no such device', file=sys.stderr); sys.exit(1)", "no such device"),
        (
            "ask(); report({'step': 'compiling 1/2'}); os.abort()",
            "while compiling 1/2: it ended the process by SIGABRT",
        ),
        (
            "ask(); from heimdall.system.child import _MARK; "
            "os.write(1, (_MARK + json.dumps(profile)[:100]).encode()); os.kill(os.getpid(), 9)",
            "it ended the process by SIGKILL",
        ),
        (
            "ask(); from heimdall.system.child import _MARK; "
            "os.write(1, (_MARK + '{\"found\": 1}\\n').encode()); time.sleep(600)",
            "its report cannot be read",
        ),
        ("ask(); time.sleep(600)", "it hangs"),
        ("ask(); report({'found': 'profile', 'value': '{}'}); ask()", "profile has no"),
    ],
)
def test_a_dnn_whose_child_fails_stays_on_the_cpu_and_that_is_said_once(
    play, monkeypatch, code, why
):
    if why == "it hangs":  # to others a busy machine gives all the time they need to start
        monkeypatch.setattr(building, "SILENCE_S", 3.0)
    world = play(code)
    world.wait()
    assert world.built == []
    assert [name for name, _ in world.failed] == ["a"]
    assert why in world.failed[0][1]
    assert not world.deployments[0].plan.built
    assert world.deployments[0].networks(CPU)


class Broken(Gpu):
    def completed(self, stop=None):
        raise KeyError("no such key")


def test_a_fault_of_ours_before_anything_is_built_ends_the_building(play):
    world = play(WORKS, Broken(), names=("a", "b"))
    world.wait()
    assert {name for name, why in world.failed if "KeyError" in why} == {"a", "b"}


def test_a_fault_of_ours_while_a_child_is_watched_ends_the_building(play, monkeypatch):
    def fail(*arguments, **options):
        raise MemoryError("no more")

    monkeypatch.setattr(building, "watch", fail)
    world = play(WORKS, names=("a", "b"))
    world.wait()
    assert {name for name, why in world.failed if "MemoryError" in why} == {"a", "b"}
    assert world.building.progress == (4, 4)


def test_where_reporting_a_failure_fails_the_building_ends_all_the_same():
    def fail(*arguments):
        raise ValueError("cannot say it")

    world = World(Refused(), [GRAPHS[0], GRAPHS[0]], ("a", "b"))
    world.building.start(world._pause, lambda each: None, fail)
    world.wait()
    world.building.close()


def test_where_one_child_dies_others_are_built_by_the_next(play):
    dies_first = """
try:
    (folder / "first").mkdir()
    os._exit(9)
except FileExistsError:
    pass
"""
    world = play(dies_first + WORKS, names=("a", "b", "c"))
    world.wait()
    assert len(world.failed) == 1
    assert sorted([*world.built, world.failed[0][0]]) == ["a", "b", "c"]


def test_a_device_that_is_refused_leaves_all_on_the_cpu(play):
    world = play(WORKS, Refused(), names=("a", "b"))
    world.wait()
    assert world.failed == [("a", "it hangs"), ("b", "it hangs")]


def test_an_end_in_the_midst_ends_the_children(play):
    world = play("report({'step': 'begun'}); ask(); time.sleep(600)")
    while "begun" not in world.building.message:
        threading.Event().wait(0.01)
    world.building.close()
    assert world.built == world.failed == []


def test_where_the_ops_are_others_than_were_measured_it_is_not_used(play, tmp_path, graphs):
    told = json.loads(profile_of(graphs[0]))
    told["ops"][0]["name"] = "another"
    world = play(f"profile = {json.dumps(told)!r}\n" + WORKS)
    world.wait()
    assert "not those that were built" in world.failed[0][1]


def test_a_child_is_told_what_ops_depend_on(play, tmp_path):
    world = play('(folder / "place").write_text(json.dumps(place))' + WORKS, Planning())
    world.wait()
    place = json.loads((tmp_path / "place").read_text())
    assert (place["units"], place["choices"]) == (3, Planning().choices)


@pytest.mark.slow
def test_a_child_makes_the_same_ops_though_the_app_opened_opencl_with_other_cores(tmp_path):
    """The drivers count cores when they are first opened in a process, which may be before a run
    that has others: DNNs stayed on the CPU then."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="c", pads=[1, 1, 1, 1])]
    sides = (1, 128, 56, 56)  # three or four ops on one core, half as many on two
    weights = np.zeros((128, 128, 3, 3), np.float32)
    onnx.save(small_model(nodes, {"x": sides}, {"y": sides}, {"w": weights}), tmp_path / "c.onnx")

    class Same(Two):
        networks = (Network(tmp_path / "c.onnx"), Network(tmp_path / "c.onnx"))

    gpu = OpenCLEngine()
    other = SimpleNamespace(gpu_cores=(0,) if gpu.units > 1 else (0, 1))
    world = World(gpu, [load_graph(tmp_path / "c.onnx")] * 2, pipeline=Same, software=other)
    world.start()
    try:
        world.wait()
    finally:
        world.building.close()
    assert world.failed == []
    assert world.built == ["a"]


def test_a_run_that_ends_while_a_network_is_loaded_does_not_wait_for_gaps(play):
    """There are no more of them: 'load' once waited for each op's, and was left behind."""
    world = play("time.sleep(0.2)" + WORKS)
    world.frames_have_ended = True
    assert world.waits.wait(LIMIT_S)
    world.building.close()
    assert not [each for each in threading.enumerate() if each.name.startswith(("load", "build"))]
    assert world.built == world.failed == []


def test_what_is_never_begun_has_no_threads(graphs):
    before = set(threading.enumerate())
    World(Gpu(), graphs).building.close()
    assert set(threading.enumerate()) == before
