"""Heat maps, masks and embeddings of one's own models."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from heimdall.errors import ConfigError, ModelError
from heimdall.graph.graph import Tensor, load_graph
from heimdall.models import Embedding, HeatMaps, ImageInput, Masks, OnnxPipeline, open_pipeline

FRAME = np.zeros((100, 200, 3), np.uint8)


def graph(output, picture=(1, 3, 64, 64), dtype=np.float32):
    return SimpleNamespace(
        name="mine",
        inputs=(Tensor("image", picture, np.dtype(dtype)),),
        results=(Tensor("out", output, np.dtype(np.float32)),),
    )


def decoded(decode, array, frame=FRAME, **options):
    network, preprocess = graph(array.shape), ImageInput(**options)
    preprocess.bind(network)
    decode.bind(network)
    return decode({"out": array.astype(np.float32)}, preprocess(frame).context)


# --- the picture as a tensor ------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 3, 64, 48), (1, 64, 48, 3), (1, 1, 64, 48), (1, 64, 48, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_a_picture_becomes_what_the_model_takes(shape, dtype):
    preprocess = ImageInput(scale=1.0, fit="stretch")
    preprocess.bind(graph((1, 2), shape, dtype))
    (tensor,) = preprocess(np.full((10, 20, 3), (10, 20, 30), np.uint8)).inputs.values()
    assert (tensor.shape, tensor.dtype) == (shape, dtype)
    channels = tensor[0] if shape[1] in (1, 3) else tensor[0].transpose(2, 0, 1)
    if len(channels) == 3:
        assert [channel.mean() for channel in channels] == pytest.approx([30, 20, 10])


def test_values_are_scaled_and_normalised():
    preprocess = ImageInput(mean=(0.5, 0.4, 0.0), std=(0.5, 1.0, 2.0), rgb=False, fit="stretch")
    preprocess.bind(graph((1, 2)))
    (tensor,) = preprocess(np.full((8, 8, 3), 255, np.uint8)).inputs.values()
    assert tensor[0, :, 3, 3] == pytest.approx([1.0, 0.6, 0.5])


@pytest.mark.parametrize("picture", [(1, 5, 64, 64), (4, 3, 64, 64), (1, 100)])
def test_an_input_that_is_no_picture_is_explained(picture):
    with pytest.raises(ModelError, match="gives one picture"):
        ImageInput().bind(graph((1, 2), picture))


def test_several_inputs_need_a_function_of_ones_own():
    network = graph((1, 2))
    network.inputs *= 2
    with pytest.raises(ModelError, match="feeds one input; mine has 2"):
        ImageInput().bind(network)


@pytest.mark.parametrize("wrong", [{"fit": "crop"}, {"mean": (1, 2)}, {"std": 0.0}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(ConfigError):
        ImageInput(**wrong)


# --- heat maps --------------------------------------------------------------------------------


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("fit", ["letterbox", "stretch"])
def test_peaks_become_points_of_the_frame(channels_last, fit):
    maps = np.zeros((1, 2, 16, 16))
    maps[0, 0, 3, 10], maps[0, 0, 3, 11] = 0.9, 0.4
    maps[0, 1, 0, 0] = 0.5
    array = maps.transpose(0, 2, 3, 1) if channels_last else maps
    points = decoded(HeatMaps(channels_last=channels_last), array, fit=fit)
    down = 100 / 64 if fit == "stretch" else 200 / 64
    assert points[0] == pytest.approx([10.75 * 4 * 200 / 64, 3.5 * 4 * down, 0.9], abs=0.01)
    assert points[1, 2] == pytest.approx(0.5)
    assert points.dtype == np.float32


def test_axes_the_other_way_round_are_noticed():
    with pytest.raises(ModelError, match="set channels_last=True"):
        HeatMaps().bind(graph((1, 64, 48, 17)))


# --- masks ------------------------------------------------------------------------------------


def test_the_border_of_a_letterbox_is_cut_off():
    array = np.zeros((1, 1, 32, 32))
    array[0, 0, :16] = 1.0  # a frame of 200x100 fills the upper half
    mask = decoded(Masks(), array)
    assert mask.values.shape == (16, 32)
    assert mask.values.min() == 1.0


def test_classes_become_probabilities():
    logits = np.zeros((1, 32, 32, 3))
    logits[..., 1] = 2.0
    mask = decoded(Masks(1, activation="softmax"), logits, fit="stretch")
    assert mask.values[0, 0] == pytest.approx(np.exp(2) / (np.exp(2) + 2))
    assert mask.values.shape == (32, 32)
    mask = decoded(Masks(0, activation="sigmoid"), logits, fit="stretch")
    assert mask.values[0, 0] == pytest.approx(0.5)


def test_the_bundled_segmentation_gives_the_same_through_the_ready_parts(run, five_people):
    selfie = open_pipeline("selfie")
    file = selfie.networks[0].path
    pipeline = OnnxPipeline(file, ImageInput(), Masks())
    pipeline.bind([load_graph(file)])
    mine, theirs = (run(each, five_people).values for each in (pipeline, selfie))
    assert theirs.max() > 0.8
    assert np.abs(mine - theirs).mean() < 0.02


@pytest.mark.parametrize("output", [(1, 2), (1, 3, 8, 8)])
def test_what_holds_no_such_mask_is_explained(output):
    with pytest.raises(ModelError, match="Masks decodes one output of shape"):
        Masks(3).bind(graph(output))


def test_an_unknown_activation_lists_the_valid_ones():
    with pytest.raises(ConfigError, match="none, sigmoid, softmax"):
        Masks(activation="relu")


# --- embeddings -------------------------------------------------------------------------------


def test_an_embedding_has_length_one():
    vector = decoded(Embedding(), np.array([[3.0, 4.0]]))
    assert vector == pytest.approx([0.6, 0.8])


def test_a_map_is_no_embedding():
    with pytest.raises(ModelError, match="more than one vector"):
        Embedding().bind(graph((1, 8, 8)))
