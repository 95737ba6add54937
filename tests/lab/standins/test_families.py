"""Networks that are built here: what the tables say is what is built, and they run."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from heimdall.errors import ConfigError
from heimdall.graph.costs import node_flops
from heimdall.graph.graph import graph_from_model
from heimdall.lab.standins import families

PRODUCTS = ("Conv", "Gemm", "MatMul")


@pytest.mark.parametrize("name", families.names())
def test_the_table_says_what_is_built(name):
    row = families.network(name)
    graph = graph_from_model(row.build().model())
    products = [node for node in graph.nodes if node.op_type in PRODUCTS]
    gmac = sum(node_flops(graph, node) for node in products) / 2e9
    assert len(graph.nodes) == row.ops
    assert gmac == pytest.approx(row.gmac, rel=0.002, abs=0.0005)
    (given,) = graph.inputs
    assert set(row.input) <= set(given.shape)


@pytest.mark.parametrize(
    "name",
    [
        *("xrbench:ritnet", "xrbench:fbnet-c", "xrbench:ed-tcn", "xrbench:res8-narrow"),
        *("xrbench:hrvit-b1", "disb:inception-v3", "disb:densenet201", "disb:distilbert"),
        "xsched:selfie",
    ],
)
def test_a_network_runs_and_stays_finite(name):
    path = families.built(name)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    picture = np.random.default_rng(0).random(given.shape, np.float32)
    assert all(np.isfinite(each).all() for each in session.run(None, {given.name: picture}))


def test_a_file_is_built_once():
    path = families.built("xrbench:res8-narrow")
    written = path.stat().st_mtime_ns
    assert families.built("xrbench:res8-narrow") == path
    assert path.stat().st_mtime_ns == written


@pytest.mark.parametrize(
    ("name", "known"), [("xrbench:ritnett", "ritnet"), ("disb:vgg91", "vgg19"), ("disc:a", "disb")]
)
def test_an_unknown_network_is_refused_by_name(name, known):
    with pytest.raises(ConfigError, match=known):
        families.built(name)


def test_only_names_of_families_are_taken_for_such_networks():
    assert families.is_built("disb:vgg19")
    assert not any(map(families.is_built, ("light:vgg19", "disb", "vgg19.onnx")))
