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


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint16])
def test_integers_are_pixels_without_a_scale(dtype):
    """Values 0..1 as integers would be a black picture."""
    preprocess = ImageInput(fit="stretch")
    preprocess.bind(graph((1, 2), dtype=dtype))
    (tensor,) = preprocess(np.full((8, 8, 3), (10, 20, 255), np.uint8)).inputs.values()
    assert tensor[0, :, 3, 3].tolist() == [255, 20, 10]


def test_signed_bytes_are_rounded_and_do_not_wrap():
    preprocess = ImageInput(mean=128, fit="stretch")
    preprocess.bind(graph((1, 2), dtype=np.int8))
    (tensor,) = preprocess(np.full((8, 8, 3), (0, 100, 255), np.uint8)).inputs.values()
    assert tensor[0, :, 3, 3].tolist() == [127, -28, -128]
    preprocess = ImageInput(scale=0.51, fit="stretch")
    preprocess.bind(graph((1, 2), dtype=np.uint8))
    (tensor,) = preprocess(np.full((8, 8, 3), 255, np.uint8)).inputs.values()
    assert tensor[0, 0, 3, 3] == 130  # 130.05


@pytest.mark.parametrize(
    ("dtype", "arguments", "says"),
    [
        (np.uint8, {"scale": 1 / 255}, "would give it 0 to 1: .* scale=1, mean=0, std=1"),
        (np.int32, {"scale": 1 / 127.5, "mean": 1.0}, "would give it -1 to 1"),
        (np.uint8, {"mean": 127.5}, "would give it -127.5 to 127.5"),
        (np.int8, {}, "int8: -128 to 127.* would give it 0 to 255: .*scale=1, mean=128"),
    ],
)
def test_integers_that_would_lose_the_picture_are_refused(dtype, arguments, says):
    with pytest.raises(ModelError, match=says):
        ImageInput(**arguments).bind(graph((1, 2), dtype=dtype))


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


@pytest.mark.parametrize(
    ("points", "cells", "picture"), [(133, (64, 48), (256, 192)), (68, (64, 64), (256, 256)),
                                     (17, (16, 12), (128, 96)), (3, (2, 2), (8, 8))]
)  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_more_points_than_cells_a_side_are_points(points, cells, picture, last):
    """Whole-body networks have 133 maps of 64 x 48 cells."""
    output = (1, *cells, points) if last else (1, points, *cells)
    decode = HeatMaps(channels_last=last)
    decode.bind(graph(output, (1, 3, *picture)))
    maps = np.zeros(output, np.float32)
    maps[(0, 1, 1, 2) if last else (0, 2, 1, 1)] = 1
    points_found = decode({"out": maps}, picture)
    assert points_found.shape == (points, 3)
    assert points_found[2, 2] == 1
    assert points_found[2, :2] == pytest.approx((1.5 * picture[1] / cells[1],) * 2, rel=0.2)


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


@pytest.mark.parametrize(
    ("output", "picture", "last"),
    [
        ((1, 150, 128, 128), (1, 3, 512, 512), False),  # SegFormer on ADE20K
        ((1, 128, 128, 150), (1, 512, 512, 3), True),
        ((1, 128, 128, 150), (1, 3, 512, 512), True),  # only the input was made channels-first
        ((1, 19, 128, 256), (1, 3, 512, 1024), False),
        ((1, 171, 60, 80), (1, 3, 480, 640), False),
        ((1, 60, 80, 171), (1, 480, 640, 3), True),
        ((1, 150, 128, 171), (1, 3, 512, 683), False),  # sides that do not divide
        ((1, 64, 64, 64), (1, 3, 256, 256), False),  # both fit: as the input
        ((1, 64, 64, 64), (1, 256, 256, 3), True),
        ((1, 2, 8, 8), (1, 3, 64, 64), False),
    ],
)
def test_the_axis_of_the_classes_is_read_from_the_aspect_ratio(output, picture, last):
    decode = Masks(1)
    network = graph(output, picture)
    decode.bind(network)
    array = np.zeros(output, np.float32)
    array[(..., 1) if last else (0, 1)] = 1
    values = decode({"out": array}, network.inputs[0].shape[2:]).values
    assert values.shape == (output[1:3] if last else output[2:])
    assert values.all()


def test_the_axis_of_the_classes_can_be_given():
    decode = Masks(2, channels_last=True)
    decode.bind(graph((1, 64, 64, 3), (1, 3, 256, 64)))
    with pytest.raises(ModelError, match="channel 100"):
        Masks(100, channels_last=False).bind(graph((1, 64, 64, 150)))


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
