"""The script that stores networks in half precision."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from heimdall.system import paths
from tests.networks import small_model

half_networks = importlib.import_module("scripts.half_networks")


def two_heads(kernel: np.ndarray) -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "kernel"], ["a"]),
        helper.make_node("Relu", ["a"], ["joints"]),
        helper.make_node("MatMul", ["a", "other"], ["mask"]),
    ]
    sides = [16, 16]
    weights = {"kernel": kernel, "other": kernel}
    return small_model(nodes, {"x": sides}, {"joints": sides, "mask": sides}, weights)


def test_unwanted_outputs_go_with_all_that_only_they_need(tmp_path: Path) -> None:
    model = two_heads(np.eye(16, dtype=np.float32))
    assert half_networks.store(half_networks.Stored("x.onnx", ("joints",)), model, tmp_path) == 0
    assert [value.name for value in model.graph.output] == ["joints"]
    assert [node.op_type for node in model.graph.node] == ["Cast", "MatMul", "Relu"]
    assert [item.name for item in model.graph.initializer] == ["kernel__half"]


def test_a_network_that_should_be_exact_and_is_not_is_an_error(tmp_path: Path) -> None:
    third = np.full((16, 16), 1 / 3, np.float32)
    with pytest.raises(ValueError, match=r"x\.onnx has weights that are no halves"):
        half_networks.store(half_networks.Stored("x.onnx"), two_heads(third), tmp_path)
    assert (
        half_networks.store(half_networks.Stored("x.onnx", exact=False), two_heads(third), tmp_path)
        > 0
    )


@pytest.mark.parametrize("network", half_networks.NETWORKS, ids=lambda network: network.file)
def test_bundled_files_are_what_the_script_makes_of_them(network) -> None:
    path = paths.ASSETS / "models" / network.file
    model = onnx.load(path)
    assert half_networks.store(network, model, path.parent) == 0
    assert model.SerializeToString(deterministic=True) == path.read_bytes()
