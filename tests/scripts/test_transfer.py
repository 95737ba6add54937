"""A classifier on the frozen beginning of another network."""

from __future__ import annotations

import importlib

import numpy as np
import onnx
import onnxruntime as ort

from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.lab.exits.data import Dataset, Pictures
from heimdall.lab.exits.exit_points import check_classifier
from heimdall.lab.exits.heads import WIDTH, Head
from heimdall.system.paths import ASSETS

transfer = importlib.import_module("scripts.transfer")
TENSOR = "PartitionedCall/onnx_tf_prefix_Concat_27:0"


def test_the_beginning_computes_what_the_network_does_there():
    graph = load_graph(ASSETS / "models" / "detect_nanodet_416.onnx")
    begun = transfer.beginning(graph, TENSOR, 416)
    assert len(begun.nodes) < len(graph.nodes) / 2
    name = graph.inputs[0].name
    given = {name: np.random.default_rng(0).random((1, 3, 416, 416), np.float32)}
    model = graph.model
    model.graph.output.append(onnx.ValueInfoProto(name=TENSOR))
    (wanted,) = ort.InferenceSession(model.SerializeToString()).run([TENSOR], given)
    (found,) = ort.InferenceSession(begun.serialized).run([TENSOR], given)
    np.testing.assert_allclose(found, wanted, atol=1e-3 * np.abs(wanted).max())


def test_with_an_end_it_is_a_classifier_of_its_own_size():
    graph = load_graph(ASSETS / "models" / "detect_nanodet_416.onnx")
    begun = transfer.beginning(graph, TENSOR, 64)
    random = np.random.default_rng(0)
    shapes = (WIDTH, 128, 3, 3), (WIDTH,), (3, WIDTH), (3,)
    head = Head(*(random.standard_normal(shape).astype(np.float32) for shape in shapes))
    none = Pictures(np.zeros(0, np.int64), lambda index: np.zeros((1, 1, 3), np.uint8))
    model = transfer.with_end(begun, head, Dataset(("a", "b", "c"), none, none))
    found = graph_from_model(model, "made")
    assert check_classifier(found) == 3
    assert found.inputs[0].shape == (1, 3, 64, 64)
