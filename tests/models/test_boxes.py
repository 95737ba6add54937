"""Boxes in the usual layouts, back in frame pixels; a layout that does not fit is explained."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from heimdall.errors import ConfigError, ModelError
from heimdall.graph.graph import Tensor, load_graph
from heimdall.models import Boxes, ImageInput, OnnxPipeline, open_pipeline

LABELS = ("cup", "box", "hand")
FRAME = np.zeros((240, 640, 3), np.uint8)  # letterboxed into 320x320: half the size
BOX = (100.0, 40.0, 180.0, 120.0)  # in input pixels
IN_FRAME = (200.0, 80.0, 360.0, 240.0)


def graph(**outputs):
    """A model of one 320 x 320 picture with these outputs."""
    tensors = [Tensor(name, shape, np.dtype(np.float32)) for name, shape in outputs.items()]
    picture = Tensor("image", (1, 3, 320, 320), np.dtype(np.float32))
    return SimpleNamespace(name="mine", inputs=(picture,), results=tuple(tensors))


def centre(box):
    left, top, right, bottom = box
    return [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]


def yolo5():
    rows = np.zeros((1, 50, 8), np.float32)
    rows[0, 7] = [*centre(BOX), 0.9, 0.1, 0.8, 0.0]
    rows[0, 8] = [*centre(BOX), 0.3, 0.1, 0.9, 0.0]  # likely a box of it, unlikely an object
    return {"out": rows}


def yolo8():
    rows = np.zeros((1, 7, 50), np.float32)
    rows[0, :, 7] = [*centre(BOX), 0.1, 0.72, 0.0]
    return {"out": rows}


def ssd():
    boxes, scores = np.zeros((1, 50, 4), np.float32), np.zeros((1, 50, 4), np.float32)
    boxes[0, 7], scores[0, 7] = np.array(BOX) / 320, [0.2, 0.1, 0.72, 0.0]
    scores[0, :7, 0] = 0.99  # background
    return {"scores": scores, "boxes": boxes}


def nanodet():
    cells = [40 * 40, 20 * 20, 10 * 10]
    rows = np.zeros((1, sum(cells), 3 + 4 * 8), np.float32)
    index = 1600 + 2 * 20 + 8  # stride 16: the cell around (136, 40)
    rows[0, index, 1] = 0.72
    bins = rows[0, index, 3:].reshape(4, 8)
    for side, distance in enumerate((36, 0, 44, 80)):
        low, share = divmod(distance / 16, 1)
        bins[side] = -50
        bins[side, int(low)] = np.log(max(1 - share, 1e-9))
        bins[side, int(low) + 1] = np.log(max(share, 1e-9))
    return {"out": rows}


@pytest.mark.parametrize(
    ("layout", "outputs"),
    [("yolov5", yolo5()), ("yolov8", yolo8()), ("ssd", ssd()), ("nanodet", nanodet())],
)
def test_every_layout_gives_the_box_in_frame_pixels(layout, outputs):
    network = graph(**{name: array.shape for name, array in outputs.items()})
    preprocess, decode = ImageInput(), Boxes(layout, LABELS)
    preprocess.bind(network)
    decode.bind(network)
    (found,) = decode(outputs, preprocess(FRAME).context)
    assert (found.label, found.score) == ("box", pytest.approx(0.72, abs=1e-3))
    assert found.box == pytest.approx(IN_FRAME, abs=(20 if layout == "nanodet" else 0.01))


def test_a_frame_that_was_resized_by_hand_needs_no_letterbox():
    decode = Boxes("yolov8", LABELS)
    decode.bind(graph(out=(1, 7, 50)))
    (found,) = decode(yolo8(), FRAME.shape[:2])
    left, top, right, bottom = BOX
    assert found.box == pytest.approx((2 * left, 0.75 * top, 2 * right, 0.75 * bottom))


def test_the_bundled_detector_gives_the_same_through_the_ready_parts(run, clip_frame):
    image = clip_frame("cup.mp4", 20)
    nanodet = open_pipeline("nanodet")
    file = nanodet.networks[0].path
    pipeline = OnnxPipeline(
        file,
        ImageInput(
            scale=1.0, rgb=False, mean=(103.53, 116.28, 123.675), std=(57.375, 57.12, 58.395)
        ),
        Boxes("nanodet"),
    )
    pipeline.bind([load_graph(file)])
    mine, theirs = run(pipeline, image), run(nanodet, image)
    assert theirs
    assert [found.label for found in mine] == [found.label for found in theirs]
    for one, other in zip(mine, theirs, strict=True):
        assert one.box == pytest.approx(other.box, abs=0.5)


@pytest.mark.parametrize(
    ("layout", "outputs", "says"),
    [
        ("yolov5", {"o": (1, 7, 8400)}, 'that is the layout "yolov8"'),
        ("yolov8", {"o": (1, 25200, 8)}, 'that is the layout "yolov5"'),
        ("yolov8", {"o": (1, 84, 8400)}, "give its 80 labels"),
        ("ssd", {"b": (1, 100, 4), "s": (1, 100, 21)}, "give its 20 labels"),
        ("nanodet", {"o": (1, 7, 8400)}, "'o' [1, 7, 8400]"),
        ("yolov5", {"o": (3,)}, r"Boxes decodes yolov5 outputs, (1, n, 5 + classes)"),
    ],
)
def test_outputs_of_another_kind_are_explained(layout, outputs, says):
    with pytest.raises(ModelError) as caught:
        Boxes(layout, LABELS).bind(graph(**outputs))
    assert says in str(caught.value)
    assert "mine has" in str(caught.value)


def test_an_unknown_layout_lists_the_valid_ones():
    with pytest.raises(ConfigError, match="nanodet, ssd, yolov5, yolov8"):
        Boxes("yolo")
