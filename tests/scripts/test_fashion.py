"""The small network of clothing: what is written computes what was trained."""

from __future__ import annotations

import importlib
import json
import re

import numpy as np
import onnxruntime as ort
import pytest

pytest.importorskip("torch")

import torch

from heimdall.graph.graph import graph_from_model
from heimdall.lab.exits.exit_points import check_classifier, places

fashion = importlib.import_module("scripts.fashion")
CLASSES = tuple("abcdefghij")


@pytest.fixture(scope="module")
def network():
    """With weights, and statistics of batch norms, drawn at random."""
    torch.manual_seed(0)
    made = fashion.Backbone(len(CLASSES))
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 2)
            module.bias.data.normal_(0, 0.2)
    return made.eval()


def test_the_file_computes_what_the_network_does(network):
    model = fashion.to_onnx(network, CLASSES)
    images = torch.rand(3, 1, fashion.SIZE, fashion.SIZE)
    with torch.no_grad():
        wanted = network(images).numpy()
    (found,) = ort.InferenceSession(model.SerializeToString()).run(None, {"image": images.numpy()})
    np.testing.assert_allclose(found, wanted, atol=0.01 * np.abs(wanted).max())  # weights in half


def test_the_file_is_a_classifier_with_places_for_exits(network):
    model = fashion.to_onnx(network, CLASSES)
    graph = graph_from_model(model, "fashion")
    assert check_classifier(graph) == 10
    assert [place.tensor for place in places(graph)] == ["stem/relu", "block1", "block2", "block3"]
    assert json.loads(graph.metadata["classes"]) == list(CLASSES)
    assert len(model.SerializeToString()) < 300_000


def test_training_lowers_the_loss_and_follows_the_seed(capsys):
    def trained(seed):
        torch.manual_seed(seed)
        made = fashion.Backbone(2)
        images = torch.zeros(32, 1, fashion.SIZE, fashion.SIZE)
        images[::2, :, 8:20, 8:20] = 1
        fashion.train(made, images, torch.arange(32) % 2, 5)
        return made.last.weight.detach().numpy()

    weights = trained(0)
    first, *_, last = re.findall(r"loss ([\d.]+)", capsys.readouterr().err)
    assert float(last) < float(first) / 2
    np.testing.assert_array_equal(trained(0), weights)
    assert not np.array_equal(trained(1), weights)
