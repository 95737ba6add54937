"""Weights in files of their own are read from the model's folder, and from nowhere else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.external_data_helper
import pytest
from onnx import helper

from heimdall.errors import ModelError
from heimdall.graph.external_data import read_external_data
from heimdall.graph.graph import load_graph
from heimdall.lab.exits.storing import refer
from tests.networks import small_model


def save(folder: Path, location: str, **more: Any) -> Path:
    """A model y = x * w, with w in the file ``location``."""
    folder.mkdir(exist_ok=True)
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    weights = {"w": np.zeros(12, np.float32)}
    model = small_model(nodes, {"x": [1, 12]}, {"y": [1, 12]}, weights)
    tensor = model.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, location, **more)
    tensor.ClearField("raw_data")
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def write(path: Path, count: int = 12) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(np.arange(count, dtype=np.float32).tobytes())


def link(path: Path, target: Path) -> None:
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("no symbolic links here")


def test_weights_of_a_folder_within_and_from_an_offset(tmp_path):
    write(tmp_path / "data" / "w.bin", 20)
    graph = load_graph(save(tmp_path, "data/w.bin", offset=32, length=48))
    assert graph.constants["w"].tolist() == list(range(8, 20))


def test_a_link_that_stays_within_is_followed(tmp_path):
    write(tmp_path / "data" / "w.bin")
    link(tmp_path / "w", tmp_path / "data" / "w.bin")
    assert load_graph(save(tmp_path, "w")).constants["w"][11] == 11


def test_a_file_linked_to_the_outside_is_refused(tmp_path):
    write(tmp_path / "w.bin")
    path = save(tmp_path / "inner", "w")
    link(tmp_path / "inner" / "w", tmp_path / "w.bin")
    with pytest.raises(ModelError, match=r"'w' of .*outside the model's folder"):
        load_graph(path)


def test_a_folder_linked_to_the_outside_is_refused(tmp_path):
    write(tmp_path / "elsewhere" / "w.bin")
    path = save(tmp_path / "inner", "data/w.bin")
    link(tmp_path / "inner" / "data", tmp_path / "elsewhere")
    with pytest.raises(ModelError, match=r"'w' of .*outside the model's folder"):
        load_graph(path)


def test_a_model_reached_by_a_link_has_the_folder_where_the_link_stands(tmp_path):
    write(tmp_path / "inner" / "w.bin")
    save(tmp_path / "inner", "w.bin")
    link(tmp_path / "outer", tmp_path / "inner")
    assert load_graph(tmp_path / "outer" / "net.onnx").constants["w"][11] == 11


@pytest.mark.parametrize("location", ["../w.bin", "data/../../w.bin", "", ".", "missing", "w\0"])
def test_places_elsewhere_and_nowhere_are_refused(tmp_path, location):
    write(tmp_path / "w.bin")
    with pytest.raises(ModelError, match=r"'w' of .*net\.onnx"):
        load_graph(save(tmp_path / "inner", location))


@pytest.mark.parametrize(
    "more",
    [{"offset": 4}, {"length": 44}, {"length": 1 << 40}, {"offset": -4}, {"offset": 1 << 62}],
)
def test_data_of_another_length_is_refused(tmp_path, more):
    write(tmp_path / "w.bin")
    with pytest.raises(ModelError, match="'w' of"):
        load_graph(save(tmp_path, "w.bin", **more))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    path = save(tmp_path, "pipe")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="which is no file"):
        load_graph(path)


def test_weights_that_stand_in_another_file_are_read_from_there(tmp_path):
    weights = np.arange(1000, dtype=np.float32)
    write(tmp_path / "other.bin", 1200)
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    constants = {"w": weights, "b": -weights}
    model = small_model(nodes, {"x": [1, 1000]}, {"y": [1, 1000]}, constants)
    refer(model, tmp_path / "other.bin")
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    assert 4000 < (tmp_path / "net.onnx").stat().st_size < 5000  # one of the two is in it
    found = load_graph(tmp_path / "net.onnx").constants
    np.testing.assert_array_equal(found["w"], weights)
    np.testing.assert_array_equal(found["b"], -weights)


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2"])
@pytest.mark.parametrize("count", [5, 8])
def test_elements_that_share_a_byte_take_what_the_file_says(tmp_path, kind, count):
    odd = getattr(onnx.TensorProto, kind, None)
    if odd is None:
        pytest.skip("this onnx does not know the type")
    bits = 2 if kind.endswith("INT2") else 4
    size = -(-count * bits // 8)
    (tmp_path / "w.bin").write_bytes(bytes(size))
    tensor = onnx.TensorProto(name="w", data_type=odd, dims=[count], raw_data=bytes(size))
    onnx.external_data_helper.set_external_data(tensor, "w.bin", offset=0, length=size)
    tensor.ClearField("raw_data")
    model = onnx.ModelProto()
    model.graph.initializer.append(tensor)
    read_external_data(tmp_path / "net.onnx", model)
    assert len(model.graph.initializer[0].raw_data) == size
