"""Objects by NanoDet: boxes of the 80 COCO classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import Letterbox, letterbox, planes
from heimdall.models.nms import nms
from heimdall.models.results import Detection

# fmt: off
COCO = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat",
    "traffic light", "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog",
    "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella",
    "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard", "sports ball", "kite",
    "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange",
    "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant",
    "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard", "cell phone",
    "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors",
    "teddy bear", "hair drier", "toothbrush",
)
# fmt: on

SIDE = 416
BINS = 11  # a distance is the expectation over 0..10 strides (generalised focal loss)
LEVELS = ((8, "Identity:0", "Identity_3:0"), (16, "Identity_1:0", "Identity_4:0"),
          (32, "Identity_2:0", "Identity_5:0"))  # fmt: skip
_MEAN = np.array([103.53, 116.28, 123.675], np.float32).reshape(1, 3, 1, 1)
_SCALE = 1 / np.array([57.375, 57.12, 58.395], np.float32).reshape(1, 3, 1, 1)


def cell_centres(stride: int, height: int, width: int) -> np.ndarray:
    """Centre (n, 2) of every cell of a ``height`` x ``width`` input, in input pixels."""
    rows, columns = np.mgrid[0 : -(-height // stride), 0 : -(-width // stride)]
    return (np.stack([columns, rows], axis=-1).reshape(-1, 2).astype(np.float32) + 0.5) * stride


_CENTRES = {stride: cell_centres(stride, SIDE, SIDE) for stride, _, _ in LEVELS}


class NanoDet(Pipeline[list[Detection]]):
    """Result: list[Detection], best first.

    ``score`` is the smallest score of a detection; ``labels`` keeps only those classes.
    """

    networks = (Network("detect_nanodet_416.onnx"),)

    def __init__(
        self, score: float = 0.4, iou: float = 0.5, labels: Sequence[str] | None = None
    ) -> None:
        self.score, self.iou = score, iou
        self.labels = None if labels is None else frozenset(labels)

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        canvas, placement = letterbox(image, SIDE, SIDE)
        tensor = planes(canvas, rgb=False)
        tensor -= _MEAN
        tensor *= _SCALE
        return [Prepared({"input_1:0": tensor}, placement)]

    def decode(
        self, stage: int, outputs: Mapping[str, np.ndarray], context: Letterbox
    ) -> list[Detection]:
        levels = [self._level(outputs, level) for level in LEVELS]
        boxes, scores, classes = (np.concatenate(parts) for parts in zip(*levels, strict=True))
        kept = nms(boxes, scores, self.iou, classes=classes)
        found = []
        for index, box in zip(kept, context.boxes_to_frame(boxes[kept]), strict=True):
            label = COCO[classes[index]]
            if self.labels is None or label in self.labels:
                left, top, right, bottom = map(float, box)
                found.append(Detection(label, float(scores[index]), (left, top, right, bottom)))
        return found

    def _level(
        self, outputs: Mapping[str, np.ndarray], level: tuple[int, str, str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Boxes (n, 4) in input pixels, scores and classes of one stride's cells."""
        stride, score_name, bin_name = level
        scores = outputs[score_name][0]
        best = scores.max(axis=1)
        chosen = np.flatnonzero(best > self.score)
        bins = outputs[bin_name][0, chosen].reshape(-1, 4, BINS)
        boxes = boxes_from_bins(bins, _CENTRES[stride][chosen], stride)
        return boxes, best[chosen], scores[chosen].argmax(axis=1)


def boxes_from_bins(bins: np.ndarray, centres: np.ndarray, stride: int) -> np.ndarray:
    """Bins (n, 4, b) of the cells at ``centres`` (n, 2) -> boxes (n, 4) in input pixels."""
    weights = np.exp(bins - bins.max(axis=2, keepdims=True))
    steps = np.arange(bins.shape[2], dtype=np.float32)
    distances = (weights @ steps) / weights.sum(axis=2) * stride
    return np.concatenate([centres - distances[:, :2], centres + distances[:, 2:]], axis=1)
