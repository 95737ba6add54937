"""Simplified models are kept as files; a damaged, stale or foreign one is never used."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from heimdall.errors import ModelError
from heimdall.graph import onnx_file, simplified
from heimdall.graph.graph import Graph, load_graph
from tests.networks import small_model


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphs"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The models that were read from their own files."""
    made: list[Path] = []
    read_model = onnx_file.read_model

    def read(path, raw, shapes):
        made.append(path)
        return read_model(path, raw, shapes)

    monkeypatch.setattr(onnx_file, "read_model", read)
    return made


def scaled(path: Path, factor: float) -> Path:
    """A model y = factor * x of a free width."""
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"], "scale")]
    constants = {"w": np.array([factor], np.float32)}
    model = small_model(nodes, {"x": [1, "n"]}, {"y": [1, "n"]}, constants)
    path.write_bytes(model.SerializeToString())
    return path


def described(graph: Graph) -> tuple:
    weights = {name: array.tolist() for name, array in graph.constants.items()}
    return graph.nodes, graph.tensors, weights, graph.opset, graph.sha256, graph.name


def test_the_second_reading_is_of_the_kept_file_and_gives_the_same_graph(kept, reads, tmp_path):
    path = scaled(tmp_path / "a.onnx", 2.0)
    first, second = load_graph(path, [1, 4]), load_graph(path, [1, 4])
    assert described(first) == described(second)
    assert reads == [path]
    assert len(list(kept.iterdir())) == 1


def test_other_shapes_other_content_and_another_version_are_read_anew(
    kept, reads, tmp_path, monkeypatch
):
    path = scaled(tmp_path / "a.onnx", 2.0)
    assert load_graph(path, [1, 4]).inputs[0].shape == (1, 4)
    assert load_graph(path, {"x": [1, 5]}).inputs[0].shape == (1, 5)
    scaled(path, 3.0)
    assert load_graph(path, [1, 4]).constants["w"] == 3
    monkeypatch.setattr(simplified, "version", lambda: "another")
    load_graph(path, [1, 4])
    assert len(reads) == 4


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:-3], lambda b: b[:-1] + b"\0\0"])
def test_a_damaged_file_is_replaced(kept, reads, tmp_path, damage):
    path = scaled(tmp_path / "a.onnx", 2.0)
    first = load_graph(path, [1, 4])
    (file,) = kept.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert described(load_graph(path, [1, 4])) == described(first)
    assert described(load_graph(path, [1, 4])) == described(first)
    assert len(reads) == 2


def test_a_model_with_weights_in_another_file_is_kept_until_those_change(kept, reads, tmp_path):
    path = scaled(tmp_path / "a.onnx", 2.0)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    for _ in range(2):
        assert load_graph(path, [1, 4]).constants["w"] == 2
    (tmp_path / "w.bin").write_bytes(np.array([7], np.float32).tobytes())
    for _ in range(2):
        assert load_graph(path, [1, 4]).constants["w"] == 7
    assert len(reads) == 2


def test_weights_that_change_while_they_are_read_are_not_kept(kept, tmp_path, monkeypatch):
    path = scaled(tmp_path / "a.onnx", 2.0)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    read_model = onnx_file.read_model

    def changing(*asked):
        (tmp_path / "w.bin").write_bytes(np.array([7], np.float32).tobytes())
        return read_model(*asked)

    monkeypatch.setattr(onnx_file, "read_model", changing)
    with pytest.raises(ModelError, match="changed while they were read"):
        load_graph(path, [1, 4])
    assert not kept.exists()


def test_without_its_weights_a_model_that_was_kept_is_refused(kept, tmp_path):
    path = scaled(tmp_path / "a.onnx", 2.0)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    load_graph(path, [1, 4])
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelError, match="which is no file"):
        load_graph(path, [1, 4])


def test_a_bad_model_is_refused_each_time(kept, tmp_path):
    path = scaled(tmp_path / "a.onnx", 2.0)
    for _ in range(2):
        with pytest.raises(ModelError, match="free or empty"):
            load_graph(path)
    assert not kept.exists()


def test_files_that_were_not_used_for_longest_go_when_there_are_too_many(
    kept, reads, tmp_path, monkeypatch
):
    paths = [scaled(tmp_path / f"{factor}.onnx", factor) for factor in (2, 3, 4)]
    for path in paths[:2]:
        load_graph(path, [1, 4])
    size = max(file.stat().st_size for file in kept.iterdir())
    for file in kept.iterdir():
        os.utime(file, (0, 0))
    load_graph(paths[0], [1, 4])  # used again
    monkeypatch.setattr(simplified, "KEPT_BYTES", 2 * size)
    load_graph(paths[2], [1, 4])
    reads.clear()
    for path in (paths[0], paths[2], paths[1]):
        load_graph(path, [1, 4])
    assert reads == [paths[1]]


def test_a_folder_that_cannot_be_written_only_costs_time(kept, reads, tmp_path):
    kept.parent.mkdir()
    kept.write_text("no folder")
    path = scaled(tmp_path / "a.onnx", 2.0)
    assert described(load_graph(path, [1, 4])) == described(load_graph(path, [1, 4]))
    assert len(reads) == 2
