"""Networks with exits are made: the backbone stays, heads learn, and figures are measured."""

import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from heimdall.engine.null import NullEngine
from heimdall.errors import ConfigError, ModelError
from heimdall.graph.graph import graph_from_model
from heimdall.lab.exits import making
from heimdall.lab.exits.data import open_dataset
from heimdall.lab.exits.exit_points import places
from heimdall.lab.exits.features import accuracies, pooled_features
from heimdall.lab.exits.heads import GRID, WIDTH, Head, load_torch, train
from heimdall.lab.exits.storing import narrow
from heimdall.lab.exits.written import with_exits
from heimdall.models.image_input import ImageInput
from tests.lab.exits.networks import CLASSES, classifier, small, write_pictures


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return open_dataset(write_pictures(tmp_path_factory.mktemp("stripes"), 60))


def quiet(*_):
    pass


def random_head(channels=8, classes=3, seed=0):
    random = np.random.default_rng(seed)
    shapes = (WIDTH, channels, 3, 3), (WIDTH,), (classes, WIDTH), (classes,)
    return Head(*(random.standard_normal(shape).astype(np.float32) for shape in shapes))


def made_of(graph):
    return {place: random_head(seed=n) for n, place in enumerate(places(graph))}


def test_what_is_written_has_the_exits_and_the_backbone_unchanged(dataset):
    graph = small(blocks=3)
    model = with_exits(graph, made_of(graph), dataset, accuracy={"exit1": 0.5})
    found = graph_from_model(model, "stripes")
    assert [each.name for each in found.exits] == ["exit1", "exit2", "exit3", "whole"]
    assert [each.accuracy for each in found.exits] == [0.5, 0, 0, 0]
    assert json.loads(found.metadata["classes"]) == list(CLASSES)
    given = {"image": np.random.default_rng(0).random((1, 1, 16, 16), np.float32)}
    (wanted,) = ort.InferenceSession(graph.serialized).run(["scores"], given)
    (whole,) = ort.InferenceSession(model.SerializeToString()).run(["scores"], given)
    np.testing.assert_array_equal(whole, wanted)


def test_a_head_computes_what_it_has_learned(dataset):
    """Against numpy: averages, a convolution, ReLU, averages, a full layer."""
    graph = small(blocks=2)
    place, head = places(graph)[0], random_head()
    model = with_exits(graph, {place: head}, dataset)
    model.graph.output.append(onnx.ValueInfoProto(name=place.tensor))
    given = {"image": np.random.default_rng(1).random((1, 1, 16, 16), np.float32)}
    session = ort.InferenceSession(model.SerializeToString())
    scores, tensor = session.run(["exit1", place.tensor], given)
    side = 16 // GRID
    pooled = tensor[0].reshape(8, GRID, side, GRID, side).mean((2, 4))
    wide = np.pad(pooled, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2))
    made = np.einsum("cyxij,wcij->wyx", windows, head.conv) + head.conv_bias[:, None, None]
    wanted = head.full @ np.maximum(made, 0).mean((1, 2)) + head.full_bias
    np.testing.assert_allclose(scores[0], wanted, rtol=1e-3, atol=1e-4)


def test_heads_end_as_the_network_does(dataset):
    graph = small(blocks=2, softmax=True)
    model = with_exits(graph, made_of(graph), dataset)
    given = {"image": np.zeros((1, 1, 16, 16), np.float32)}
    found = ort.InferenceSession(model.SerializeToString()).run(None, given)
    assert len(found) == 3
    for scores in found:
        assert scores.sum() == pytest.approx(1, abs=1e-5)


def test_weights_are_halves_where_the_networks_were(dataset):
    stored = classifier(blocks=2)
    narrow(stored)
    sizes = []
    for source in (stored, classifier(blocks=2)):
        graph = graph_from_model(source, "stripes")
        model = with_exits(graph, made_of(graph), dataset)
        sizes.append(len(model.SerializeToString()))
    assert sizes[0] < 0.65 * sizes[1]


def test_features_are_averages_of_what_the_network_makes(dataset):
    graph = small(blocks=2)
    (place, _) = places(graph)
    given = ImageInput(fit="stretch")
    found = pooled_features(graph, [place.tensor], given, dataset.test, quiet)[place.tensor]
    assert found.shape == (len(dataset.test), 8, GRID, GRID)
    model = graph.model
    model.graph.output.append(onnx.ValueInfoProto(name=place.tensor))
    session = ort.InferenceSession(model.SerializeToString())
    for index in (0, len(dataset.test) - 1):
        inputs = given(dataset.test.read(index)).inputs
        (tensor,) = session.run([place.tensor], dict(inputs))
        wanted = tensor[0].reshape(8, GRID, 4, GRID, 4).mean((2, 4))
        np.testing.assert_allclose(found[index], wanted, rtol=2e-3, atol=1e-3)


def test_accuracy_is_the_share_of_pictures_that_get_their_label(dataset):
    graph = small(blocks=1)
    given, right = ImageInput(fit="stretch"), 0
    given.bind(graph)
    session = ort.InferenceSession(graph.serialized)
    for index, label in enumerate(dataset.test.labels):
        (scores,) = session.run(None, dict(given(dataset.test.read(index)).inputs))
        right += scores[0].argmax() == label
    found = accuracies(graph.model, given, dataset.test, quiet)
    assert found == {"scores": right / len(dataset.test)}


def test_delays_are_those_of_the_ops_that_each_exit_runs(dataset):
    graph = small(blocks=2)
    made = made_of(graph)
    model = with_exits(graph, made, dataset)
    right = {"exit1": 0.5, "exit2": 0.75, "scores": 0.9}
    found = making.measure(model, made, right, NullEngine(op_ns=1000), quiet)
    assert [each.accuracy for each in found] == list(right.values())
    network = NullEngine().load(graph_from_model(model))
    wanted = [1000 * sum(b - a for a, b in exit.ranges) for exit in network.exits]
    assert [each.delay_ns for each in found] == wanted
    assert [each.name for each in found] == ["exit1", "exit2", "whole"]
    assert found[0].head_bytes == 4 * (WIDTH * (8 * 9 + 1) + 3 * (WIDTH + 1))
    assert found[-1].head_bytes == 0
    assert [each.chunk_bytes for each in found] == [4 * 8 * 9, 4 * 8 * 8 * 9, 4 * (8 * 8 * 9 + 24)]
    chunks = [1000 * (b - a) for a, b in network.exits[-1].ranges]
    assert [each.chunk_ns for each in found] == chunks


def variants(*rows):
    """Of (accuracy, delay, chunk's bytes)."""
    return [
        making.Variant(f"exit{n}", f"y{n}", 10, size, accuracy, delay, (delay, delay), 1)
        for n, (accuracy, delay, size) in enumerate(rows)
    ]


def test_exits_are_kept_by_accuracy_front_and_memory():
    rows = (0.5, 10, 100), (0.8, 20, 100), (0.75, 30, 100), (0.9, 40, 100)
    assert making.choose(variants(*rows), 0.5, 1e9) == (0, 1, 3)  # one beats the third
    assert making.choose(variants(*rows), 0.15, 1e9) == (1, 3)
    assert making.choose(variants(*rows), 0.5, 425) == (1, 3)  # room for two heads
    with pytest.raises(ConfigError, match="budget"):
        making.choose(variants(*rows), 0.5, 200)


def test_the_networks_own_end_goes_where_an_exit_is_as_good(dataset):
    assert making.choose(variants((0.8, 10, 9), (0.9, 20, 9), (0.89, 30, 9)), 0.2, 1e9) == (0, 1)
    graph = small(blocks=3)
    full = with_exits(graph, made_of(graph), dataset)
    model = with_exits(graph, made_of(graph), dataset, kept=[0, 2])
    found = graph_from_model(model, "stripes")
    assert [each.name for each in found.exits] == ["exit1", "exit3"]
    assert [each.name for each in found.outputs] == ["exit1", "exit3"]
    assert len(found.nodes) < len(graph_from_model(full, "stripes").nodes)
    assert "features" not in found.tensors
    given = {"image": np.random.default_rng(0).random((1, 1, 16, 16), np.float32)}
    ours, theirs = (ort.InferenceSession(each.SerializeToString()) for each in (model, full))
    for name in ("exit1", "exit3"):
        np.testing.assert_array_equal(ours.run([name], given), theirs.run([name], given))


def test_one_exit_alone_is_a_network_without_exits(dataset):
    graph = small(blocks=2)
    model = with_exits(graph, made_of(graph), dataset, kept=[1])
    found = graph_from_model(model, "stripes")
    assert not found.exits
    assert [each.name for each in found.outputs] == ["exit2"]


def test_data_of_another_number_of_classes_are_refused(dataset):
    with pytest.raises(ConfigError, match="tells 5 classes apart, and the data have 3"):
        making.check_fits(small(classes=5), dataset)
    with pytest.raises(ModelError, match="no classifier"):
        making.check_fits(small(classes=1), dataset)


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ConfigError, match=r"heimdall-ar\[learn\]"):
        load_torch()


# --- with PyTorch ---


def test_exits_learn_what_the_backbone_sees(dataset):
    pytest.importorskip("torch")
    graph = small(blocks=3)
    recipe = making.Recipe(epochs=150)  # of one step each
    chosen = places(graph)
    heads = making.train_heads(graph, dataset, ImageInput(fit="stretch"), chosen, recipe, quiet)
    model = with_exits(graph, dict(zip(chosen, heads, strict=True)), dataset)
    right = accuracies(model, ImageInput(fit="stretch"), dataset.test, quiet)
    assert right["exit1"] > 0.8  # the backbone's own guess, untrained: a third
    assert right["exit3"] > 0.8


def test_the_same_seed_gives_the_same_head():
    pytest.importorskip("torch")
    random = np.random.default_rng(0)
    features = random.standard_normal((50, 4, 3, 3)).astype(np.float16)
    labels = random.integers(0, 3, 50)

    def head(seed):
        return train(features, labels, 3, epochs=2, seed=seed, progress=quiet)

    np.testing.assert_array_equal(head(1).conv, head(1).conv)
    assert not np.array_equal(head(1).conv, head(2).conv)
