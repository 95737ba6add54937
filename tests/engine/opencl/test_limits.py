"""A network that does not fit the device is refused, by its node, before memory is allocated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl import compiled
from heimdall.engine.opencl.limits import check_fits
from heimdall.errors import ModelError


def device(buffer, memory):
    platform = SimpleNamespace(name="test")
    return SimpleNamespace(
        name="small", platform=platform, max_mem_alloc_size=buffer, global_mem_size=memory
    )


@pytest.fixture
def graph(build):
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"], "wide", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "act"),
        helper.make_node("MaxPool", ["b"], ["y"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    kernel = np.ones((64, 3, 3, 3), np.float32)
    return build(nodes, {"x": (1, 3, 64, 64)}, {"k": kernel})


@pytest.fixture
def placed(engine, graph):
    made = compiled.Compiled(engine, graph, ())
    return made.placer.storages, made.arena_floats


@pytest.mark.parametrize("limits", [(1 << 20, 1 << 40), (1 << 40, 1 << 20)])
def test_a_tensor_too_large_names_its_node(graph, placed, limits):
    with pytest.raises(ModelError, match=r"node '(wide|act)' .* makes 1 MB; choose smaller input"):
        check_fits(graph, placed[0], placed[1], device(*limits))


def test_what_fits_passes(graph, placed):
    check_fits(graph, placed[0], placed[1], device(1 << 23, 1 << 24))


def test_offsets_beyond_32_bits_are_refused_even_where_there_is_memory(graph, placed):
    storages, _ = placed
    with pytest.raises(ModelError, match="in one piece"):
        check_fits(graph, storages, 1 << 31, device(1 << 50, 1 << 50))


def test_nothing_is_allocated_for_a_network_that_does_not_fit(engine, graph, monkeypatch):
    monkeypatch.setattr(compiled.cl, "Buffer", lambda *_: pytest.fail("allocates"))
    small: Any = SimpleNamespace(
        traits=engine.traits,
        device=device(1 << 10, 1 << 40),
        context=engine.context,
        plans_branches=False,
    )
    with pytest.raises(ModelError, match="small"):
        compiled.Compiled(small, graph, ())
