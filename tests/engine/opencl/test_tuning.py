"""Choices of kernels: kept in files, shipped for families, looked up by layers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from heimdall.engine.opencl.activation import Activation
from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.conv_spec import ConvSpec, Layer
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.tuning import (
    SCHEMA,
    Tuning,
    family,
    read_family,
    write_family,
)
from heimdall.system import paths

TRAITS = Traits("cpu", 16, 1, 32)
TILE = {"tile": [1, 8, 1]}


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "shipped")


def layer(seed=0, offset=0, channels=32):
    random = np.random.default_rng(seed)
    weights = random.random((channels, channels, 1, 1), np.float32)
    place = Layout(channels, 8, 8, 16, offset=offset)
    return Layer(ConvSpec((1, 1)), place, place, weights, None)


def tuning(driver="1.0", traits=TRAITS, family=""):
    return Tuning("A GPU", driver, traits, family)


def shipped(name, **changes):
    content = {"schema": SCHEMA, "family": name, "choices": {layer().signature: TILE}, **changes}
    path = paths.PROFILES / "tuning" / f"{name}.json"
    paths.replace_file(path, json.dumps(content).encode())


def test_a_signature_holds_sizes_but_neither_weights_nor_places():
    assert layer().signature == layer(seed=1, offset=64).signature
    assert layer().signature != layer(channels=64).signature
    assert layer().signature != replace(layer(), half=True).signature


def test_a_signature_names_the_activation_and_not_the_text_of_its_kernel(monkeypatch):
    activated = replace(layer(), spec=ConvSpec((1, 1), activation=Activation("relu")))
    assert activated.signature == f"{layer().signature}, relu"
    monkeypatch.setattr(Activation, "macro", "#define ACT(V, v, p, q, s) max(v, 0)")
    again = replace(layer(), spec=ConvSpec((1, 1), activation=Activation("relu")))
    assert again.signature == activated.signature


def test_what_another_process_saves_does_not_change_choices_that_were_handed_over():
    app = tuning()
    tuner = tuning()
    tuner.set(layer(), TILE)
    tuner.save()
    child = Tuning("A GPU", "1.0", TRAITS, own=app.own)
    assert tuning().lookup(layer()) == TILE
    assert child.lookup(layer()) is app.lookup(layer()) is None
    assert child.version == app.version == ""
    child.set(layer(channels=64), TILE)
    child.save()
    assert tuning().lookup(layer()) == TILE  # what was saved meanwhile stays


def test_choices_come_back_from_the_file_of_the_same_device_and_driver():
    first = tuning()
    assert first.lookup(layer()) is None
    assert not first.knows(layer())
    assert first.version == ""
    first.set(layer(), TILE)
    first.save()
    again = tuning()
    assert again.lookup(layer()) == TILE
    assert again.knows(layer())
    assert again.version == first.version != ""
    assert tuning("1.1").lookup(layer()) is None
    assert tuning(traits=replace(TRAITS, compute_units=2)).lookup(layer()) is None


def test_the_tables_choice_is_a_finding_too_but_no_other_version():
    found = tuning()
    found.set(layer(), {})
    found.save()
    assert tuning().knows(layer())
    assert tuning().lookup(layer()) is None
    assert tuning().version == ""


def test_what_another_process_has_saved_meanwhile_stays():
    one, other = tuning(), tuning()
    other.set(layer(), TILE)
    other.save()
    one.set(layer(channels=64), TILE)
    one.save()
    assert tuning().knows(layer())
    assert tuning().knows(layer(channels=64))


@pytest.mark.parametrize(
    ("traits", "name"),
    [
        (Traits("cpu", 16, 1, 32), "avx512-1"),
        (Traits("cpu", 16, 4, 32), "avx512-n"),
        (Traits("cpu", 8, 2, 16), "avx2-n"),
        (Traits("cpu", 4, 1, 32), "neon-1"),
        (Traits("cpu", 4, 1, 16), ""),
        (Traits("gpu", 4, 20, 32), "gpu-n"),
    ],
)
def test_a_device_belongs_to_a_family_by_its_vectors_and_compute_units(traits, name):
    assert family(traits) == name


def test_a_gpu_that_gets_kernels_for_cpus_belongs_to_no_family():
    assert family(Traits("cpu", 4, 8, 32), hardware=True) == ""


def test_the_machines_own_choices_go_before_those_of_its_family():
    shipped("avx512-1")
    own = tuning(family="avx512-1")
    assert own.lookup(layer()) == TILE
    assert not own.knows(layer())
    assert own.version == tuning(family="avx512-1").version != ""
    assert tuning(family="avx512-n").lookup(layer()) is None
    own.set(layer(), {"tile": [1, 4, 1]})
    own.save()
    assert tuning(family="avx512-1").lookup(layer()) == {"tile": [1, 4, 1]}
    own.set(layer(), {})
    own.save()
    assert tuning(family="avx512-1").lookup(layer()) is None
    assert tuning(family="avx512-1").version == ""


def test_a_family_table_is_written_with_where_it_comes_from():
    found = tuning()
    found.set(layer(), TILE)
    found.set(layer(channels=64), {})
    names = [layer().signature, layer(channels=64).signature]
    path = write_family("avx2-1", found.chosen(names), {"machine": "a CPU", "rounds": 21})
    content = json.loads(path.read_text())
    assert content["choices"] == {layer().signature: TILE}
    assert (content["machine"], content["rounds"]) == ("a CPU", 21)
    assert tuning("2", family="avx2-1").lookup(layer()) == TILE


def test_every_table_that_is_shipped_can_be_read(monkeypatch, caplog):
    monkeypatch.undo()
    for path in (paths.PROFILES / "tuning").glob("*.json"):
        assert read_family(path.stem)
        assert {"machine", "device", "driver", "date", "rounds"} <= set(
            json.loads(path.read_text())
        )
    assert caplog.text == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 1},
        {"family": "avx2-1"},
        {"choices": {"x": {"speed": 2}}},
        {"choices": []},
    ],
)
def test_a_damaged_family_table_is_reported_and_not_used(changes, caplog):
    shipped("avx512-1", **changes)
    assert tuning(family="avx512-1").version == ""
    assert "cannot be used" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema": 9, "choices": {}}',
        '{"schema": 2, "choices": {"x": {"tile": [0, 1, 1]}}}',
        '{"schema": 2, "choices": {"x": {"tile": "abc"}}}',
        '{"schema": 2, "choices": {"x": {"speed": 2}}}',
        '{"schema": 2, "choices": {"x": 3}}',
    ],
)
def test_a_damaged_file_is_reported_and_not_used(content, caplog):
    paths.replace_file(tuning().path, content.encode())
    assert tuning().version == ""
    assert "cannot be used" in caplog.text


def test_a_choice_changes_the_tile():
    default = plan_conv(layer(), TRAITS)
    chosen = plan_conv(layer(), TRAITS, {"tile": [1, 4, 1], "winograd": False})
    assert default.launches != chosen.launches
