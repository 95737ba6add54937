"""Profile files: used while they are valid, noticed and renewed when they are not."""

import json
import os

import pytest

from heimdall.analyzer import store
from heimdall.analyzer.store import load_or_measure
from heimdall.engine.null import NullEngine
from heimdall.graph import simplified
from heimdall.graph.graph import graph_from_model
from heimdall.system import paths


class CountingEngine(NullEngine):
    """Counts how often a network was loaded on it: once for each measurement."""

    def __init__(self, **about):
        super().__init__(op_ns=50_000)
        self.about = about
        self.loads = 0

    def load(self, graph, *, force_fallback=(), on_progress=None):
        self.loads += 1
        return super().load(graph, force_fallback=force_fallback)

    def describe(self):
        return {**super().describe(), "device": "Test GPU (R) 3", **self.about}


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "shipped")
    return tmp_path


@pytest.fixture
def gpu():
    return CountingEngine()


CPU = NullEngine("cpu")


def files(places):
    return sorted((places / "cache" / "profiles").rglob("*"))


def only(places):
    (found,) = [path for path in files(places) if path.is_file()]
    return found


def test_first_run_measures_and_later_runs_read(graph, gpu, places):
    first = load_or_measure(graph, gpu, CPU)
    assert load_or_measure(graph, gpu, CPU) == first
    assert gpu.loads == 1
    assert only(places).parent.name == "test-gpu-r-3"
    assert only(places).name.startswith("six-")


def test_loaded_network_is_measured_instead_of_another(graph, gpu):
    network = gpu.load(graph)
    load_or_measure(graph, gpu, CPU, network=network)
    assert gpu.loads == 1


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("driver", "driver: was none, is 99"),
        ("version", "the code, kernels or tuning that run it have changed"),
    ],
)
def test_profile_of_another_driver_or_engine_version_is_measured_again(
    graph, gpu, places, caplog, field, said
):
    load_or_measure(graph, gpu, CPU)
    newer = CountingEngine(**{field: "99"})
    profile = load_or_measure(graph, newer, CPU)
    assert newer.loads == 1
    assert getattr(profile.key, field) == "99"
    assert caplog.messages == [
        f"the saved timings of six are out of date ({said}): measuring it again, once"
    ]
    assert json.loads(only(places).read_text())["key"][field] == "99"


def test_profile_of_a_graph_that_other_code_read_is_measured_again(graph, gpu, caplog, monkeypatch):
    load_or_measure(graph, gpu, CPU)
    monkeypatch.setattr(simplified, "version", lambda: "newer")
    load_or_measure(graph, gpu, CPU)
    assert gpu.loads == 2
    assert "the code that reads models" in caplog.text


def test_modes_and_forced_fallbacks_have_profiles_of_their_own(graph, gpu, places):
    load_or_measure(graph, gpu, CPU, mode="real time")
    load_or_measure(graph, gpu, CPU, mode="time-sliced")
    forced = load_or_measure(graph, gpu, CPU, mode="time-sliced", force_fallback=["Abs"])
    assert sum(op.fallback for op in forced.ops) == 1
    assert len([path for path in files(places) if path.is_file()]) == 3
    load_or_measure(graph, gpu, CPU, mode="real time")
    assert gpu.loads == 3


def test_another_network_of_the_same_name_has_a_profile_of_its_own(graph, gpu, places):
    load_or_measure(graph, gpu, CPU)
    model = type(graph.model)()
    model.CopyFrom(graph.model)
    model.graph.node[0].op_type = "Sigmoid"
    load_or_measure(graph_from_model(model, "six"), gpu, CPU)
    assert gpu.loads == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "\x00" * 100,
        lambda text: text.replace('"whole_ns":', '"hole_ns":'),
        lambda text: text.replace('"schema_version": 1', '"schema_version": 9'),
        lambda text: "[]",
    ],
    ids=["empty", "truncated", "zeros", "field", "schema", "list"],
)
def test_damaged_file_is_reported_and_replaced(graph, gpu, places, caplog, damage):
    good = load_or_measure(graph, gpu, CPU)
    text = only(places).read_text()
    assert damage(text) != text
    only(places).write_text(damage(text))
    again = load_or_measure(graph, gpu, CPU)
    assert gpu.loads == 2
    assert "measuring again" in caplog.text
    assert again.ops == good.ops
    assert load_or_measure(graph, gpu, CPU) == again


def test_profile_whose_ops_are_not_those_of_the_network_is_measured_again(graph, gpu, places):
    load_or_measure(graph, gpu, CPU)
    data = json.loads(only(places).read_text())
    data["ops"].pop()
    only(places).write_text(json.dumps(data))
    again = load_or_measure(graph, gpu, CPU, network=gpu.load(graph))
    assert len(again.ops) == 6


def test_shipped_profile_is_used_and_never_written(graph, gpu, places):
    load_or_measure(graph, gpu, CPU)
    (places / "cache" / "profiles").rename(places / "shipped")
    load_or_measure(graph, gpu, CPU)
    assert gpu.loads == 1
    assert files(places) == []


def test_remeasure_ignores_a_valid_profile(graph, gpu):
    load_or_measure(graph, gpu, CPU)
    load_or_measure(graph, gpu, CPU, remeasure=True)
    assert gpu.loads == 2


def test_failure_to_write_leaves_the_old_file_and_no_rubbish(
    graph, gpu, places, caplog, monkeypatch
):
    load_or_measure(graph, gpu, CPU)
    before = only(places).read_bytes()

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    profile = load_or_measure(graph, gpu, CPU, remeasure=True)
    assert profile.ops
    assert "cannot be saved" in caplog.text
    assert only(places).read_bytes() == before


def test_failed_measurement_leaves_no_file(graph, gpu, places, monkeypatch):
    def broken(*_):
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(store, "measure_ops", broken)
    with pytest.raises(RuntimeError):
        load_or_measure(graph, gpu, CPU)
    assert not files(places)


@pytest.mark.parametrize(
    ("device", "folder"),
    [
        ("Intel(R) UHD 770", "intel-r-uhd-770"),
        ("../../etc", "etc"),
        ("中", "device"),
        ("", "device"),
    ],
)
def test_device_names_become_safe_folder_names(device, folder):
    assert paths.slug(device) == folder
