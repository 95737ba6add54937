"""Rows times weights of a few bits, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits
from heimdall.graph.graph import graph_from_model
from tests.graph.test_packed_weights import product, run

KINDS = {
    "this device": None,
    "a GPU": Traits("gpu", 4, 8, 32),
    "narrow CPU": Traits("cpu", 8, 2, 16),
}


@pytest.fixture(scope="module", params=KINDS)
def engine(request):
    return OpenCLEngine(traits=KINDS[request.param])


@settings(max_examples=12)
@given(
    lines=some.sampled_from([1, 1, 3, 32, 34]),
    blocks=some.integers(1, 4),
    columns=some.integers(1, 200),
    bits=some.sampled_from([4, 8]),
    size=some.sampled_from([16, 32, 128]),
    zeros=some.sampled_from(["", "packed"]),
    bias=some.booleans(),
)
def test_any_sizes(engine, lines, blocks, columns, bits, size, zeros, bias):
    net = product(blocks * size, columns, bits, size, zeros, bias, lines=lines)
    x = np.random.default_rng(2).standard_normal((lines, blocks * size)).astype(np.float32)
    wanted = run(net, {"x": x})
    network = engine.load(graph_from_model(net))
    assert not any(op.fallback for op in network.ops)
    found = network.infer(network.new_state(), {"x": x})["y"]
    assert np.abs(found - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1)
