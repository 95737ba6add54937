"""Labels of classifiers, with exits and without; the bundled one, on every engine."""

import cv2
import numpy as np
import onnx
import pytest

from heimdall.engine import open_engine
from heimdall.errors import DeviceError, ModelError
from heimdall.graph.exits import METADATA, as_whole
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.models import ImageInput, Label, Labels, open_pipeline
from heimdall.system.paths import ASSETS
from tests.engine.networks_with_exits import with_exits
from tests.lab.exits.networks import small

FILE = ASSETS / "models" / "fashion_exits_28.onnx"


def trousers():
    """Drawn: two legs, light on black, as tall as the picture."""
    image = np.zeros((280, 280, 3), np.uint8)
    for side in (-1, 1):
        legs = [(140, 0), (140 + 45 * side, 0), (140 + 55 * side, 279), (140 + 12 * side, 279)]
        cv2.fillPoly(image, [np.array(legs)], (200, 200, 200))
    return image


@pytest.fixture(scope="module")
def graph():
    return load_graph(FILE)


@pytest.fixture(scope="module", params=["opencl", "onnxruntime"])
def engine(request):
    try:
        opened = open_engine(request.param)
    except DeviceError as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


def without_heads(graph):
    """The bundled network as it was before it got exits."""
    model = graph.model
    (last,) = graph.exits[-1].outputs
    needed, nodes = {last}, list[onnx.NodeProto]()
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            nodes.insert(0, onnx.NodeProto.FromString(node.SerializeToString()))
    outputs = [value for value in model.graph.output if value.name == last]
    weights = [item for item in model.graph.initializer if item.name in needed]
    for name, values in (("node", nodes), ("output", outputs), ("initializer", weights)):
        model.graph.ClearField(name)
        getattr(model.graph, name).extend(values)
    kept = [entry for entry in model.metadata_props if entry.key != METADATA]
    model.ClearField("metadata_props")
    model.metadata_props.extend(kept)
    return graph_from_model(model, "backbone")


def test_every_exit_of_the_bundled_network_knows_trousers(engine, graph):
    pipeline = open_pipeline("fashion")
    pipeline.bind([graph])
    network = engine.load(graph)
    (given,) = pipeline.prepare(0, trousers(), [], {})
    for exit in network.exits:
        state = network.new_state()
        network.write(state, given.inputs)
        for start, end in exit.ranges:
            network.run(state, start, end)
        decoded = pipeline.decode(0, as_whole(graph.exits, network.read(state)), given.context)
        label = pipeline.combine([[decoded]], None)
        assert (label.name, label.exit) == ("Trouser", exit.name)
        assert 0.5 < label.score <= 1


def test_accuracies_rise_along_the_exits_of_the_bundled_network(graph):
    found = [each.accuracy for each in graph.exits]
    assert len(found) > 2
    assert found == sorted(found)
    assert found[0] > 0.8
    assert found[-1] > 0.92


def test_the_bundled_network_computes_what_it_did_without_exits(engine, graph):
    network, alone = engine.load(graph), engine.load(without_heads(graph))
    assert not alone.exits
    whole, (last,) = network.exits[-1], graph.exits[-1].outputs
    for seed in range(3):
        given = {"image": np.random.default_rng(seed).random((1, 1, 28, 28), np.float32)}
        wanted = alone.infer(alone.new_state(), given)[last]
        state = network.new_state()
        network.write(state, given)
        for start, end in whole.ranges:
            network.run(state, start, end)
        np.testing.assert_array_equal(network.read(state)[last], wanted)


def test_a_decoder_names_the_largest_score_and_its_share():
    decode = Labels(("across", "down", "flat"))
    decode.bind(small())
    found = decode({"scores": np.log(np.array([[1.0, 6.0, 3.0]]))}, None)
    assert (found.name, found.exit) == ("down", "")
    assert found.score == pytest.approx(0.6)


def test_probabilities_are_taken_as_they_are():
    decode = Labels()
    decode.bind(small(softmax=True))
    assert decode({"chances": np.array([[0.2, 0.1, 0.7]])}, None) == Label("2", 0.7)


def test_of_several_exits_the_last_one_that_was_computed_counts():
    graph, labels = with_exits(), Labels("abcd")
    labels.bind(graph)

    def decode(outputs, context):
        return labels(as_whole(graph.exits, outputs), context)

    scores = {
        "y1": np.array([[9.0, 0, 0, 0]]),
        "y2": np.array([[0, 9.0, 0, 0]]),
        "y3": np.array([[0, 0, 9.0, 0]]),
    }
    assert decode({"y1": scores["y1"]}, None).exit == "first"
    found = decode({"y2": scores["y2"], "y1": scores["y1"]}, None)
    assert (found.name, found.exit) == ("b", "second")
    assert decode(scores, None).name == "c"


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(ModelError, match="3 classes, and there are 2 names"):
        Labels(("a", "b")).bind(small())


def test_a_network_that_is_no_classifier_is_refused():
    with pytest.raises(ModelError, match="Labels decodes one output of shape"):
        Labels().bind(load_graph(ASSETS / "models" / "seg_selfie_256.onnx"))


def test_pictures_of_ones_own_go_in_through_an_image_input(graph):
    given = ImageInput()
    given.bind(graph)
    assert given(trousers()).inputs["image"].shape == (1, 1, 28, 28)
