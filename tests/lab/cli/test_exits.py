"""`heimdall exits`: what it says of input that it cannot use, and what it prints."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from heimdall.cli import main
from heimdall.graph.graph import load_graph
from heimdall.lab.cli.exits import _described
from heimdall.lab.cli.schemas import json_schema
from heimdall.lab.cli.tables import exits_report
from heimdall.lab.exits.making import Variant
from heimdall.system.paths import ASSETS
from tests.docs.json_schemas import wrong
from tests.lab.exits.networks import (
    CLASSES,
    classifier,
    seeing,
    write_clip,
    write_flat,
    write_pictures,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a classifier, and one of labelled pictures."""
    folder = tmp_path_factory.mktemp("exits")
    onnx.save(classifier(blocks=3), folder / "stripes.onnx")
    onnx.save(classifier(blocks=0), folder / "short.onnx")
    onnx.save(classifier(classes=5), folder / "five.onnx")
    write_pictures(folder / "data", 30)
    onnx.save(seeing(), folder / "seeing.onnx")
    onnx.save(classifier(classes=3000), folder / "many.onnx")
    write_flat(folder / "flat", 15)
    write_clip(folder / "clip.mp4", 10)
    return folder


def invoke(*arguments):
    return CliRunner().invoke(main, ["exits", *map(str, arguments)])


@pytest.mark.parametrize(
    ("model", "data", "more", "says"),
    [
        ("stripes.onnx", "data", ["--exits", "9"], "places for 3 exits"),
        ("short.onnx", "data", [], "no place for an exit"),
        ("five.onnx", "data", [], "tells 5 classes apart, and the data have 3"),
        ("stripes.onnx", "nothing", [], "no folder of labelled pictures"),
        ("gone.onnx", "data", [], "gone.onnx"),
        ("stripes.onnx", "data", ["--out", "x.txt"], "x.txt"),
        (ASSETS / "models" / "seg_selfie_256.onnx", "data", [], "no classifier"),
        ("hand", "data", [], "hand has 2 networks"),
        ("fashion", "data", [], "early exits already"),
        ("fashion", "flat", [], "early exits already"),
        ("hand", "flat", [], "by --stage"),
        ("hand", "flat", ["--stage", "3"], "no stage 3"),
        ("stripes.onnx", "flat", ["--stage", "1"], "for a name of the catalogue"),
        ("stripes.onnx", "data", ["--test", "x"], "for pictures without labels"),
        ("stripes.onnx", "flat", ["--after", "b9"], "'b9'"),
        ("stripes.onnx", "flat", ["--test", "nowhere"], "no clip and no folder with pictures"),
        ("many.onnx", "flat", [], "no exit can make output 'scores'"),
        ("stripes.onnx", "flat", ["--beside"], "--beside needs --out FILE in the folder"),
        ("centerface", "flat", ["--beside", "--out", "x.onnx"], "in the folder of the network"),
    ],
)
def test_input_that_cannot_be_used_gets_one_error(files, model, data, more, says):
    named = files / model if str(model).endswith(".onnx") else model
    done = invoke(named, "--data", files / data, *more)
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_without_pytorch_the_extra_is_named(files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    done = invoke(files / "stripes.onnx", "--data", files / "data")
    assert done.exit_code == 2
    assert "heimdall-ar[learn]" in done.stderr


RESULT = {
    "model": "a.onnx",
    "file": "b.onnx",
    "size_kb": 12.3,
    "tested_on": 10,
    "judged_by": "labels",
    "engine": {"device": "some GPU"},
    "exits": [
        {"name": "exit1", "after": "b0", "accuracy": 0.8125, "delay_ms": 0.5, "delay_p10_ms": 0.4,
         "delay_p90_ms": 0.75, "head_kb": 4.0, "chunk_kb": 9.0, "kept": True},
        {"name": "whole", "after": None, "accuracy": 0.9, "delay_ms": 1.5, "delay_p10_ms": 1.4,
         "delay_p90_ms": 1.75, "head_kb": 0.0, "chunk_kb": 9.0, "kept": False},
    ],
}  # fmt: skip


def test_the_table_has_a_line_an_exit(shown):
    lines = shown(exits_report(RESULT))
    assert any("exit1" in line and "81.2" in line and "0.500" in line for line in lines)
    assert any("whole" in line and "90.0" in line for line in lines)
    assert lines[-1] == "b.onnx, 12 kB"


def test_an_exit_is_as_its_schema_says():
    exit = Variant("whole", "y", 0, 9000, 0.9, 1_500_000, (1_400_000, 1_750_000), 900_000)
    schema = json_schema("exits")
    kind = {"$defs": schema["$defs"], "$ref": "#/$defs/Exit"}
    assert wrong(kind, {**_described(exit, None), "kept": True}) == []


def test_a_network_gets_exits(files):
    pytest.importorskip("torch")
    made = files / "made.onnx"
    done = invoke(
        files / "stripes.onnx", "--data", files / "data", "--out", made, "--epochs", 80, "--json"
    )
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    assert wrong(json_schema("exits"), result) == []
    assert result["classes"] == list(CLASSES)
    assert result["trained_on"] == 72
    assert result["tested_on"] == 18
    assert result["exits"][-2]["accuracy"] > 0.6
    for exit in result["exits"]:
        assert exit["delay_p10_ms"] <= exit["delay_ms"] <= exit["delay_p90_ms"]
    kept = [(exit["name"], exit["accuracy"]) for exit in result["exits"] if exit["kept"]]
    assert kept
    # Delays are measured: where one is the best and the soonest, no other pays, and none is made.
    written = kept if len(kept) > 1 else []
    found = [(exit.name, exit.accuracy) for exit in load_graph(made).exits]
    assert [name for name, _ in found] == [name for name, _ in written]
    accuracies = [accuracy for _, accuracy in written]
    assert [accuracy for _, accuracy in found] == pytest.approx(accuracies, abs=1e-4)


@pytest.mark.parametrize("data", ["flat", "clip.mp4"])
def test_exits_learn_from_pictures_without_labels(files, data):
    pytest.importorskip("torch")
    made = files / "taught.onnx"
    done = invoke(
        files / "seeing.onnx", "--data", files / data, "--after", "b0", "--after", "b1", "--out",
        made, "--epochs", 2, "--copies", 3, "--max-drop", 100, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    assert wrong(json_schema("exits"), result) == []
    assert result["judged_by"] == "the values of its outputs"
    assert (result["trained_on"], result["tested_on"]) == {"flat": (36, 3), "clip.mp4": (24, 2)}[
        data
    ]
    assert [exit["after"] for exit in result["exits"]] == ["b0", "b1", None]
    assert result["exits"][-1]["accuracy"] == 1
    assert {each.name for each in load_graph(made).results} == {"mask", "values"}


def test_what_lies_beside_its_network_has_the_heads_alone(files):
    pytest.importorskip("torch")
    sizes = {}
    for name, more in (("full.onnx", []), ("heads.onnx", ["--beside"])):
        done = invoke(
            files / "seeing.onnx", "--data", files / "flat", "--after", "b1", "--out",
            files / name, "--epochs", 1, "--copies", 1, "--max-drop", 100, *more,
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        sizes[name] = (files / name).stat().st_size
    assert sizes["heads.onnx"] < sizes["full.onnx"]
    full, beside = (load_graph(files / name) for name in sizes)
    assert full.constants.keys() == beside.constants.keys()
    for name, array in full.constants.items():
        np.testing.assert_array_equal(array, beside.constants[name])
