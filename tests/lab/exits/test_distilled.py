"""Heads that give all outputs of a network, on every engine; what they learn of the whole."""

import numpy as np
import onnxruntime as ort
import pytest

from heimdall.engine import open_engine
from heimdall.errors import ConfigError, DeviceError, ModelError
from heimdall.graph.exits import as_whole
from heimdall.graph.graph import graph_from_model
from heimdall.lab.exits.distilled import Branch, Distilled, untrained, wanted
from heimdall.lab.exits.exit_points import places
from heimdall.lab.exits.observed import agreements, observe
from heimdall.lab.exits.source import File, PipelineStage
from heimdall.lab.exits.teaching import teach
from heimdall.lab.exits.unlabelled import open_views
from heimdall.lab.exits.written import with_exits
from heimdall.models.catalog import open_pipeline
from heimdall.models.image_input import ImageInput
from tests.lab.exits.networks import seeing, small, write_flat


def quiet(*_):
    pass


def random_weights(head, channels, seed=0):
    """The head with weights of the right shapes."""
    random = np.random.default_rng(seed)

    def filled(branch, channels):
        weights = []
        for kind, *sizes in branch.layers:
            if kind == "flatten":
                channels *= 16  # 4x4 pixels are left of 8x8
            if kind in ("conv", "full", "up"):
                shape = {
                    "conv": (sizes[0], channels, 3, 3),
                    "full": (sizes[0], channels),
                    "up": (channels, *sizes),
                }[kind]
                weights += [random.standard_normal(shape) * 0.1, random.standard_normal(sizes[0])]
                channels = sizes[0]
        return Branch(branch.layers, tuple(each.astype(np.float32) for each in weights)), channels

    widths = {kind: filled(trunk, channels) for kind, trunk in head.trunks.items()}
    ends = [(out, filled(branch, widths[out.trunk][1])[0]) for out, branch in head.ends]
    return Distilled({kind: each for kind, (each, _) in widths.items()}, tuple(ends))


def made_of(graph, chosen):
    outputs = wanted(graph)
    heads = [untrained(graph.tensors[place.tensor], outputs) for place in chosen]
    widths = [graph.tensors[place.tensor].shape[1] for place in chosen]
    pairs = zip(heads, widths, strict=True)
    filled = [random_weights(head, width, n) for n, (head, width) in enumerate(pairs)]
    return dict(zip(chosen, filled, strict=True))


@pytest.fixture(params=["null", "onnxruntime", "opencl"])
def engine(request):
    try:
        opened = open_engine(request.param)
    except DeviceError as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


def test_places_lie_on_the_way_to_the_top_of_a_pyramid():
    """Behind the stem, which the top reads too, and behind blocks; not within one."""
    assert [place.tensor for place in places(graph_from_model(seeing()))] == ["half", "b0", "b1"]


@pytest.mark.parametrize("last", [False, True])
def test_every_exit_gives_every_output_in_its_shape(engine, last):
    graph = graph_from_model(seeing(last=last), "seeing")
    model = with_exits(graph, made_of(graph, places(graph)), accuracy={"exit1/values": 0.5})
    found = graph_from_model(model, "seeing")
    assert [each.name for each in found.exits] == ["exit1", "exit2", "exit3", "whole"]
    given = {"image": np.random.default_rng(0).random((1, 1, 16, 16), np.float32)}
    session = ort.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_outputs()]
    truth = dict(zip(names, session.run(names, given), strict=True))
    network = engine.load(found)
    alone = ort.InferenceSession(graph.serialized).run(None, given)
    for exit, declared in zip(network.exits, found.exits, strict=True):
        state = network.new_state()
        network.write(state, given)
        for start, end in exit.ranges:
            network.run(state, start, end)
        outputs = as_whole(found.exits, network.read(state))
        assert outputs.exit == exit.name
        for tensor, name in zip(graph.outputs, declared.outputs, strict=True):
            assert outputs[tensor.name].shape == tensor.shape
            if engine.computes:
                np.testing.assert_allclose(outputs[tensor.name], truth[name], atol=1e-4)
    for tensor, array in zip(graph.outputs, alone, strict=True):
        np.testing.assert_allclose(truth[tensor.name], array, atol=1e-6)


def test_a_head_of_maps_fits_other_sizes():
    """It knows nothing of the grid but how it compares with that of the output."""
    graph = graph_from_model(seeing())
    (mask,) = (each for each in wanted(graph) if each.is_map)
    head = untrained(graph.tensors["b0"], [mask])
    assert [layer[0] for branch in head.trunks.values() for layer in branch.layers] == [
        "conv", "relu", "conv", "relu",
    ]  # fmt: skip
    assert head.ends[0][1].layers == (("up", 1, 2, 2),)


def test_outputs_that_no_exit_can_make_are_refused():
    graph = graph_from_model(seeing())
    mask, values = sorted(wanted(graph), key=lambda each: -len(each.shape))
    assert (mask.trunk, values.trunk) == ("map", "row")
    odd = type(graph.tensors["b0"])("odd", (1, 8, 7, 7), np.dtype(np.float32))
    with pytest.raises(ModelError, match=r"behind 'odd' .* neither grid is a multiple"):
        untrained(odd, [mask])
    with pytest.raises(ModelError, match=r"no exit can make output 'scores' \[1, 3000\]"):
        wanted(small(classes=3000))
    with pytest.raises(ModelError, match="early exits already"):
        wanted(graph_from_model(with_exits(graph, made_of(graph, places(graph)))))


def test_answers_of_a_file_are_compared_value_by_value():
    source = File(graph_from_model(seeing()), ImageInput(fit="stretch"))
    whole = {"mask": np.full((1, 1, 16, 16), 0.5), "values": np.array([[1.0, 3.0]])}
    assert source.alike(whole, whole, None) == 1
    half = {"mask": whole["mask"] / 2, "values": whole["values"] + [[0.0, 1.0]]}
    assert source.alike(half, whole, None) == pytest.approx((0.5 + 0.5) / 2)
    far = {"mask": whole["mask"] * 0, "values": whole["values"] + 100}
    assert source.alike(far, whole, None) == 0


def test_a_stage_is_given_what_it_gets_in_an_app():
    pipeline = open_pipeline("hand")
    from heimdall.graph.graph import load_graph

    graphs = [load_graph(each.path, each.shapes) for each in pipeline.networks]
    black = np.zeros((120, 160, 3), np.uint8)
    (task,) = PipelineStage(pipeline, graphs, 0).prepare(black)
    assert task.inputs["input_1"].shape == graphs[0].inputs[0].shape
    assert list(PipelineStage(pipeline, graphs, 1).prepare(black)) == []  # there is no hand
    with pytest.raises(ConfigError, match="stages 1 to 2, and no stage 3"):
        PipelineStage(pipeline, graphs, 2)


def test_where_nothing_comes_of_the_pictures_it_is_said(tmp_path):
    pipeline = open_pipeline("hand")
    from heimdall.graph.graph import load_graph

    graphs = [load_graph(each.path, each.shapes) for each in pipeline.networks]
    learnt, _ = open_views(write_flat(tmp_path, 2), copies=1)
    with pytest.raises(ConfigError, match="an earlier stage found nothing"):
        observe(PipelineStage(pipeline, graphs, 1), [], learnt, quiet)


def test_the_whole_network_says_what_it_says(tmp_path):
    graph = graph_from_model(seeing(), "seeing")
    source = File(graph, ImageInput(fit="stretch"))
    model = with_exits(graph, made_of(graph, places(graph)))
    _, kept = open_views(write_flat(tmp_path), copies=1)
    found, count = agreements(model, source, kept, quiet)
    assert (found["mask"], count) == (1, len(kept))
    assert list(found) == ["exit1/mask", "exit2/mask", "exit3/mask", "mask"]
    assert found["exit1/mask"] < 0.9


# --- with PyTorch ---


@pytest.mark.parametrize("last", [False, True])
def test_exits_learn_what_the_whole_network_says(tmp_path, last):
    pytest.importorskip("torch").set_num_threads(1)
    graph = graph_from_model(seeing(last=last), "seeing")
    source = File(graph, ImageInput(fit="stretch"))
    learnt, kept = open_views(write_flat(tmp_path, 20), copies=12)
    (place, *_) = places(graph)
    seen = observe(source, [place.tensor], learnt, quiet)
    assert len(seen) == len(learnt) == 16 * 12
    blank = untrained(graph.tensors[place.tensor], wanted(graph))

    def head(epochs):
        given = seen.tensors[place.tensor]
        return teach(blank, given, seen.outputs, epochs=epochs, seed=0, progress=quiet)

    def agreement(head):
        return agreements(with_exits(graph, {place: head}), source, kept, quiet)[0]

    name = f"exit1/{graph.outputs[0].name}"
    assert agreement(head(12))[name] > max(0.8, agreement(head(1))[name])


def test_the_same_seed_teaches_the_same(tmp_path):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    graph = graph_from_model(seeing())
    source = File(graph, ImageInput(fit="stretch"))
    learnt, _ = open_views(write_flat(tmp_path, 5), copies=2)
    seen = observe(source, ["b0"], learnt, quiet)
    blank = untrained(graph.tensors["b0"], wanted(graph))

    def head(seed):
        found = teach(blank, seen.tensors["b0"], seen.outputs, epochs=1, seed=seed, progress=quiet)
        return found.trunks["map"].weights[0]

    np.testing.assert_array_equal(head(1), head(1))
    assert not np.array_equal(head(1), head(2))
