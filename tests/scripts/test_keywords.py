"""The network of keywords: what is written computes what was trained; what it is trained on."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from heimdall.graph.graph import graph_from_model

data = importlib.import_module("scripts.keywords_data")
keywords = importlib.import_module("scripts.keywords")
spoken = importlib.import_module("scripts.spoken")


@pytest.fixture(scope="module")
def network():
    """With weights, and statistics of batch norms, drawn at random."""
    torch.manual_seed(0)
    made = keywords.Network()
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 2)
            module.bias.data.normal_(0, 0.2)
    made.last.weight.data.mul_(10)  # so that classes differ
    return made.eval()


def sounds(count, level=0.1):
    random = np.random.default_rng(0)
    slopes = np.linspace(0, 2, count)
    return np.stack([level * spoken.noise(random, data.WINDOW, slope) for slope in slopes]).astype(
        np.float32
    )


def test_the_file_computes_what_the_network_does(network):
    model, sound = keywords.to_onnx(network), sounds(3)
    with torch.no_grad():
        scores = network(keywords.Spectrum()(torch.from_numpy(sound)))
    wanted = torch.softmax(scores, 1).numpy()
    found = keywords.probabilities(model, sound)
    assert wanted.max() - wanted.min() > 0.1
    np.testing.assert_allclose(found, wanted, atol=0.02)  # weights in half


def test_the_file_is_small_for_its_spectrum_is_folded_when_it_is_loaded(network):
    model = keywords.to_onnx(network)
    assert len(model.SerializeToString()) < 150_000
    graph = graph_from_model(model, "keywords")
    assert "Cos" not in {node.op_type for node in graph.nodes}
    assert graph.inputs[0].shape == (1, data.WINDOW)


def test_the_spectrum_does_not_depend_on_how_loud_it_is():
    spectrum = keywords.Spectrum()
    loud, soft = (spectrum(torch.from_numpy(sounds(3, level))) for level in (0.5, 0.05))
    assert loud.shape == (3, keywords.BANDS, 99)
    assert (loud - soft).abs().max() < 0.05
    silence = spectrum(torch.zeros(1, data.WINDOW))
    assert silence.abs().max() < 1e-5


class Beeps:
    """A pool of a word that sounds as its place in the list, 0.4 s long."""

    def draw(self, random, word):
        hz = 300 * (1 + data.KEYWORDS.index(word)) if word else 100
        return 0.5 * np.sin(2 * np.pi * hz * np.arange(6400) / data.RATE)


def test_most_of_a_word_is_in_its_window_and_little_of_it_in_that_of_others():
    random, found = np.random.default_rng(0), []
    for _ in range(100):
        whole = data._with_word(random, Beeps(), "red")
        part = data._with_part(random, Beeps())
        found.append([np.count_nonzero(each) for each in (whole, part)])
    assert min(whole for whole, _ in found) >= 0.94 * 6400
    windows = [data.window(random, Beeps()) for _ in range(200)]
    assert {number for _, number in windows} == set(range(len(data.CLASSES)))
    for sound, _ in windows:
        assert sound.shape == (data.WINDOW,)
        assert sound.dtype == np.float32
        assert np.abs(sound).max() <= 1


def test_what_is_tested_on_was_not_learnt():
    assert set(data.OTHERS).isdisjoint({*data.UNHEARD, *data.KEYWORDS})
    assert set(data.UNHEARD).isdisjoint(data.KEYWORDS)
    assert set(spoken.SPEAKERS).isdisjoint(spoken.HELD_OUT)


def test_a_room_and_a_microphone_keep_the_length():
    random, samples = np.random.default_rng(0), np.zeros(5000)
    samples[1000] = 1.0
    echo = spoken.in_a_room(random, samples)
    assert len(echo) == len(spoken.through_a_microphone(random, samples)) == 5000
    assert np.abs(echo[:1000]).max() < 1e-9 < np.abs(echo[1001:]).max()
    assert echo[1000] == pytest.approx(1.0)
