"""The tuner: measures each kind of layer, believes no variant that computes something else."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl import slices, tuner
from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Kernel, Traits
from heimdall.system import paths
from heimdall.vocabulary.enums import Precision


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "shipped")
    monkeypatch.setattr(tuner, "CLEARLY", 99.0)  # even a slower one is chosen


@pytest.fixture
def graph(build):
    """A dense layer twice, one with a residual, and a depthwise one."""
    random = np.random.default_rng(0)
    constants = {
        "w": random.standard_normal((32, 32, 3, 3)).astype(np.float32),
        "d": random.standard_normal((32, 1, 3, 3)).astype(np.float32),
    }
    pads = [1, 1, 1, 1]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="a", pads=pads),
        helper.make_node("Conv", ["a", "w"], ["b"], name="b", pads=pads),
        helper.make_node("Conv", ["b", "w"], ["c"], name="c", pads=pads),
        helper.make_node("Add", ["c", "b"], ["r"], name="r"),
        helper.make_node("Conv", ["r", "d"], ["y"], name="y", group=32, pads=pads),
    ]
    return build(nodes, {"x": (1, 32, 16, 16)}, constants)


def open_engine(**options):
    return OpenCLEngine(keep_kernels=False, **options)


def ignore(done, total):
    pass


@pytest.mark.parametrize("traits", [None, Traits("gpu", 4)], ids=["this device", "a GPU"])
def test_tuning_measures_each_kind_of_layer_and_results_stay_right(shared, graph, traits, caplog):
    engine = open_engine(traits=traits)
    before = engine.describe()["version"]
    seen = []
    found = engine.tune(graph, lambda done, total: seen.append((done, total)), rounds=1)
    assert len(found) == 3
    assert seen[-1] == (3, 3)
    assert all(each.before_ns > 0 and each.after_ns > 0 for each in found.values())
    assert [each.wrong for each in found.values()] == [0, 0, 0]
    assert "not used" not in caplog.text
    assert engine.describe()["version"] != before
    choices = json.loads(engine.tuning.path.read_text())["choices"]
    assert set(choices) == set(found)
    assert any(choices.values())
    random = np.random.default_rng(1)
    inputs = {"x": random.standard_normal((1, 32, 16, 16)).astype(np.float32)}
    network = open_engine(traits=traits).load(graph)  # reads the file
    result = shared.run(network, network.new_state(), inputs)
    assert shared.relative_error(result, shared.reference(graph, inputs)) <= 1e-4


@pytest.mark.parametrize("broken", ["source", "size"])
def test_a_variant_that_the_driver_refuses_leaves_the_others(graph, monkeypatch, caplog, broken):
    """It does not build, or is refused at launch."""

    def plan(layer, traits, tuned=None):
        made = plan_conv(layer, traits, tuned)
        if not (tuned or {}).get("tile"):
            return made
        (first, *rest) = made.launches
        if broken == "source":
            first = replace(first, kernel=Kernel.of("this is no kernel", first.kernel.name))
        else:
            first = replace(first, local_size=tuple(1 << 20 for _ in first.local_size))
        return replace(made, launches=(first, *rest))

    monkeypatch.setattr(tuner, "plan_conv", plan)
    engine = open_engine()
    found = engine.tune(graph, ignore, rounds=1)
    assert len(found) == 3
    assert all(each.wrong > 0 for each in found.values())
    assert "does not run with" in caplog.text
    assert engine.load(graph).tuned


@pytest.mark.parametrize("broken", ["source", "weights"])
def test_a_default_that_is_wrong_or_does_not_build_is_not_the_truth(
    graph, monkeypatch, caplog, broken
):
    def plan(layer, traits, tuned=None):
        made = plan_conv(layer, traits, tuned)
        if tuned:
            return made
        if broken == "weights":
            halved = {name: array / 2 for name, array in made.constants.items()}
            return replace(made, constants=halved)
        (first, *rest) = made.launches
        first = replace(first, kernel=Kernel.of("this is no kernel", first.kernel.name))
        return replace(made, launches=(first, *rest))

    monkeypatch.setattr(tuner, "plan_conv", plan)
    monkeypatch.setattr(tuner, "CLEARLY", 0.0)  # nothing is faster
    engine = open_engine()
    found = engine.tune(graph, ignore, rounds=1)
    assert [each.wrong for each in found.values()] == [1, 1, 1]
    assert "with the default" in caplog.text
    assert all(json.loads(engine.tuning.path.read_text())["choices"].values())


def test_half_precision_has_choices_of_its_own(graph, caplog):
    engine = open_engine()
    if Precision.FP16 not in engine.precisions:
        pytest.skip("this device has no half precision")
    half = engine.in_precision(Precision.FP16)
    found = half.tune(graph, ignore, rounds=1)
    assert all(signature.endswith("half") for signature in found)
    assert [each.wrong for each in found.values()] == [0, 0, 0]
    assert "not used" not in caplog.text
    assert half.load(graph).tuned
    assert not engine.load(graph).tuned


def damaging(change):
    """``plan_conv`` whose variants with a tile of their own have their weights changed."""

    def plan(layer, traits, tuned=None):
        made = plan_conv(layer, traits, tuned)
        if not (tuned or {}).get("tile"):
            return made
        constants = {
            name: change(array) if name.startswith("w") else array
            for name, array in made.constants.items()
        }
        return replace(made, constants=constants)

    return plan


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: weights * np.float32(1.01),
        lambda weights: np.roll(weights, 1),
        lambda weights: np.full_like(weights, np.nan),
    ],
    ids=["a percent", "in other places", "not numbers"],
)
def test_a_variant_that_computes_something_else_is_reported_and_never_chosen(
    graph, monkeypatch, caplog, change
):
    monkeypatch.setattr(tuner, "plan_conv", damaging(change))
    engine = open_engine()
    found = engine.tune(graph, ignore, rounds=1)
    assert all(each.wrong > 0 for each in found.values())
    choices = json.loads(engine.tuning.path.read_text())["choices"]
    assert not any("tile" in tuned for tuned in choices.values())
    for signature in found:
        (line, *_) = [each for each in caplog.messages if signature in each]
        assert "not used" in line
        assert "tile" in line


def test_a_variant_that_writes_around_the_picture_is_not_chosen(graph, monkeypatch, caplog):
    right = tuner._Bench.prepare

    def prepare(self, plan):
        variant = right(self, plan)
        if self.prepared:  # all but the default
            self._before[:1] = 1.0  # as if it had written there: the halo's first number
        self.prepared = True
        return variant

    monkeypatch.setattr(tuner._Bench, "prepared", False, raising=False)
    monkeypatch.setattr(tuner._Bench, "prepare", prepare)
    found = open_engine().tune(graph, ignore, rounds=1)
    assert any(each.wrong for each in found.values())
    assert "off by inf" in caplog.text


def test_layers_that_were_measured_are_left_out_unless_asked_for(graph):
    engine = open_engine()
    assert not engine.load(graph).tuned
    found = engine.tune(graph, ignore, rounds=1)
    assert engine.load(graph).tuned
    assert open_engine().load(graph).tuned
    assert engine.tune(graph, ignore, rounds=1, again=False) == {}
    assert set(engine.tune(graph, ignore, rounds=1)) == set(found)


def test_a_gain_must_be_clear(graph, monkeypatch):
    monkeypatch.setattr(tuner, "CLEARLY", 0.0)
    engine = open_engine()
    found = engine.tune(graph, ignore, rounds=1)
    assert all(each.before_ns == each.after_ns for each in found.values())
    assert engine.describe()["version"] == open_engine().describe()["version"]
    assert not any(json.loads(engine.tuning.path.read_text())["choices"].values())


def test_tuning_beside_a_start_changes_the_ops_of_neither_side(graph, monkeypatch):
    """An app opens the device, another process saves other tiles, and then a child of the app
    opens it, too."""
    monkeypatch.setattr(slices, "OP_FLOPS", 1.0)  # as many ops as a layer has work-groups
    one_core = Traits("cpu", 16, 1, 32)
    layers = Compiled(open_engine(traits=one_core), graph, ()).convolutions

    def save(tile):
        other = open_engine(traits=one_core)
        for each in layers:
            other.tuning.set(each, {"tile": tile, "winograd": False})
        other.tuning.save()

    def ops(engine):
        return [op.name for op in Compiled(engine, graph, ()).ops]

    save([1, 8, 1])
    app = open_engine(traits=one_core)
    save([1, 4, 2])
    child = open_engine(traits=one_core, choices=json.loads(json.dumps(app.choices)))
    assert ops(child) == ops(app)
    assert child.describe() == app.describe()
    assert ops(open_engine(traits=one_core)) != ops(app)
