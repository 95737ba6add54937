"""A ready ``decode`` for detectors of your own: boxes in the layouts that are common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.errors import ConfigError, unknown
from heimdall.graph.graph import Tensor
from heimdall.models.decoders import Decoder
from heimdall.models.detect import COCO, boxes_from_bins, cell_centres
from heimdall.models.nms import nms
from heimdall.models.results import Detection

Found = tuple[np.ndarray, np.ndarray]  # boxes (n, 4) in input pixels, class scores (n, classes)
Reader = Callable[[Mapping[str, np.ndarray]], Found]
Shapes = Mapping[str, tuple[int, ...]]  # of the outputs
_STRIDES = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32), (16, 32))


class Boxes(Decoder):
    """Result: list[Detection], best first, in frame pixels.

    ``layout``: what the outputs are, n boxes of c classes (the ``labels``, COCO's by default):

    - "yolov5": (1, n, 5 + c), centre and size in input pixels, objectness, class scores
    - "yolov8": (1, 4 + c, n), centre and size in input pixels, class scores
    - "ssd": (1, n, 4) corners left, top, right, bottom in 0..1, and (1, n, c) scores; one class
      more than labels: the first one is the background
    - "nanodet": (1, n, c + 4 b) scores, and b bins for the distance to each side; or scores and
      bins of each stride as outputs of their own

    ``score`` is the smallest score of a detection, ``iou`` the overlap that two of one class may
    have.
    """

    def __init__(
        self,
        layout: str,
        labels: Sequence[str] = COCO,
        *,
        score: float = 0.4,
        iou: float = 0.5,
    ) -> None:
        if layout not in LAYOUTS:
            raise ConfigError(unknown("layout of Boxes", layout, LAYOUTS))
        self._layout, self._labels = layout, tuple(labels)
        self._score, self._iou = score, iou
        self.wants = f"{layout} outputs, {LAYOUTS[layout].wants} ({len(self._labels)} labels)"

    def _check(self, outputs: Sequence[Tensor]) -> None:
        shapes = {each.name: each.shape for each in outputs}
        read = LAYOUTS[self._layout](shapes, len(self._labels), self._input)
        if read is None:
            raise self._mismatch(outputs, self._better(shapes))
        self._read = read

    def _better(self, shapes: Shapes) -> str:
        """The layout, or the number of labels, that would fit."""
        count = len(self._labels)
        for name, layout in LAYOUTS.items():
            if layout(shapes, count, self._input) is not None:
                return f'that is the layout "{name}"'
        classes = LAYOUTS[self._layout].classes(shapes)
        fits = classes > 0 and LAYOUTS[self._layout](shapes, classes, self._input) is not None
        return f"give its {classes} labels" if fits else ""

    def __call__(self, outputs: Mapping[str, np.ndarray], context: Any) -> list[Detection]:
        boxes, scores = self._read(outputs)
        best = scores.max(axis=1)
        likely = np.flatnonzero(best > self._score)
        boxes, best, classes = boxes[likely], best[likely], scores[likely].argmax(axis=1)
        kept = nms(boxes, best, self._iou, classes=classes)
        places = self._placement(context).boxes_to_frame(boxes[kept])
        return [
            Detection(self._labels[classes[index]], float(best[index]), (left, top, right, bottom))
            for index, (left, top, right, bottom) in zip(kept, places.tolist(), strict=True)
        ]


class Layout:
    """One arrangement of outputs. Calling it with output shapes, number of classes and input
    (height, width) gives a function from outputs to Found, or None when they do not fit."""

    wants = ""

    def classes(self, shapes: Shapes) -> int:
        """How many classes these outputs would have."""
        raise NotImplementedError

    def __call__(self, shapes: Shapes, classes: int, size: tuple[int, int]) -> Reader | None:
        raise NotImplementedError


class _Yolo(Layout):
    """``first``: what of a row comes before its class scores; rows lie along the last axis, or
    ``across`` it."""

    def __init__(self, wants: str, first: int, *, across: bool) -> None:
        self.wants, self._first, self._across = wants, first, across

    def classes(self, shapes: Shapes) -> int:
        # Exports often carry the raw feature maps as further outputs: the first one counts.
        shape = next(iter(shapes.values()))
        return shape[1 if self._across else 2] - self._first if len(shape) == 3 else 0

    def __call__(self, shapes: Shapes, classes: int, size: tuple[int, int]) -> Reader | None:
        name, shape = next(iter(shapes.items()))
        if len(shape) != 3 or shape[0] != 1 or self.classes(shapes) != classes:
            return None

        def read(outputs: Mapping[str, np.ndarray]) -> Found:
            rows = outputs[name][0].T if self._across else outputs[name][0]
            centres, half = rows[:, :2], rows[:, 2:4] / 2
            scores = rows[:, self._first :]
            if self._first == 5:  # of whatever the object is, given that there is one
                scores = scores * rows[:, 4:5]
            return np.concatenate([centres - half, centres + half], axis=1), scores

        return read


class _Ssd(Layout):
    wants = "(1, n, 4) and (1, n, classes)"

    def classes(self, shapes: Shapes) -> int:
        return max((shape[-1] for shape in shapes.values() if len(shape) == 3), default=0) - 1

    def __call__(self, shapes: Shapes, classes: int, size: tuple[int, int]) -> Reader | None:
        flat = {name: shape for name, shape in shapes.items() if len(shape) == 3 and shape[0] == 1}
        # With three or four classes both are four wide: then the name tells which is which.
        for boxes in sorted(flat, key=lambda name: not re.search("box|loc", name.lower())):
            shape = flat[boxes]
            for scores, other in flat.items():
                fits = other[1] == shape[1] and other[2] in (classes, classes + 1)
                if boxes != scores and shape[2] == 4 and fits:
                    return self._reader(boxes, scores, other[2] - classes, size)
        return None

    def _reader(self, boxes: str, scores: str, background: int, size: tuple[int, int]) -> Reader:
        scale = np.array([size[1], size[0]] * 2, np.float32)

        def read(outputs: Mapping[str, np.ndarray]) -> Found:
            return outputs[boxes][0] * scale, outputs[scores][0][:, background:]

        return read


class _NanoDet(Layout):
    wants = "(1, n, classes + 4 bins), or (1, n, classes) and (1, n, 4 bins) of each stride"

    def classes(self, shapes: Shapes) -> int:
        return 0

    def __call__(self, shapes: Shapes, classes: int, size: tuple[int, int]) -> Reader | None:
        flat = {name: shape for name, shape in shapes.items() if len(shape) == 3 and shape[0] == 1}
        for strides in _STRIDES:
            cells = [-(-size[0] // stride) * -(-size[1] // stride) for stride in strides]
            whole = [name for name, shape in flat.items() if shape[1] == sum(cells)]
            if whole and (bins := flat[whole[0]][2] - classes) > 4 and bins % 4 == 0:
                return lambda outputs: _distances(outputs[whole[0]][0], classes, size, strides)
            levels = [_level(flat, count, classes) for count in cells]
            if all(levels):
                return lambda outputs: _distances(
                    np.concatenate(
                        [np.hstack([outputs[name][0] for name in level]) for level in levels]
                    ),
                    classes,
                    size,
                    strides,
                )
        return None


def _level(flat: Shapes, cells: int, classes: int) -> list[str]:
    """The names of one stride's scores and bins; empty when there are none."""
    here = {name: shape[2] for name, shape in flat.items() if shape[1] == cells}
    scores = [name for name, last in here.items() if last == classes]
    bins = [name for name, last in here.items() if last % 4 == 0 and last > 4 and last != classes]
    return [scores[0], bins[0]] if scores and bins else []


def _distances(
    rows: np.ndarray, classes: int, size: tuple[int, int], strides: Sequence[int]
) -> Found:
    boxes, start = [], 0
    for stride in strides:
        centres = cell_centres(stride, *size)
        part = rows[start : start + len(centres), classes:]
        boxes.append(boxes_from_bins(part.reshape(len(centres), 4, -1), centres, stride))
        start += len(centres)
    return np.concatenate(boxes), rows[:, :classes]


LAYOUTS: Mapping[str, Layout] = {
    "yolov5": _Yolo("(1, n, 5 + classes)", 5, across=False),
    "yolov8": _Yolo("(1, 4 + classes, n)", 4, across=True),
    "ssd": _Ssd(),
    "nanodet": _NanoDet(),
}
