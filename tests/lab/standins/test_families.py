"""XRBench's networks: what the table says is what is built, and they run."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from heimdall.errors import ConfigError
from heimdall.graph.costs import node_flops
from heimdall.graph.graph import graph_from_model
from heimdall.lab.standins import xrbench

PRODUCTS = ("Conv", "Gemm", "MatMul")


@pytest.mark.parametrize("name", xrbench.NETWORKS)
def test_the_table_says_what_is_built(name):
    row = xrbench.network(name)
    graph = graph_from_model(row.build().model())
    products = [node for node in graph.nodes if node.op_type in PRODUCTS]
    gmac = sum(node_flops(graph, node) for node in products) / 2e9
    assert len(graph.nodes) == row.ops
    assert gmac == pytest.approx(row.gmac, rel=0.002, abs=0.0005)
    (given,) = graph.inputs
    assert given.shape[-1] == row.input[0]
    assert row.input[1] in given.shape


@pytest.mark.parametrize("name", ["ritnet", "fbnet-c", "ed-tcn", "res8-narrow", "hrvit-b1"])
def test_a_network_runs_and_stays_finite(name):
    path = xrbench.built(xrbench.PREFIX + name)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    picture = np.random.default_rng(0).random(given.shape, np.float32)
    assert all(np.isfinite(each).all() for each in session.run(None, {given.name: picture}))


def test_a_file_is_built_once():
    path = xrbench.built("xrbench:res8-narrow")
    written = path.stat().st_mtime_ns
    assert xrbench.built("xrbench:res8-narrow") == path
    assert path.stat().st_mtime_ns == written


def test_an_unknown_network_is_refused_by_name():
    with pytest.raises(ConfigError, match="ritnet"):
        xrbench.built("xrbench:ritnett")
