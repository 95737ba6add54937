"""Faces with five landmarks by CenterFace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import Letterbox, letterbox, planes, sides
from heimdall.models.nms import nms
from heimdall.models.results import Detection

STRIDE = 4


class CenterFace(Pipeline[list[Detection]]):
    """Result: list[Detection] labelled "face", best first. ``points`` are the eyes, the nose and
    the corners of the mouth (5, 2); left ones in the picture come first.

    ``size`` = (height, width) of the input, multiples of 32: larger finds smaller faces.
    ``exits``: with early exits, which policies that use them may end at.
    """

    size_step = 32

    def __init__(
        self,
        size: tuple[int, int] = (480, 640),
        score: float = 0.5,
        iou: float = 0.3,
        exits: bool = False,
    ) -> None:
        self.height, self.width = sides("centerface size", size, self.size_step)
        self.score, self.iou = score, iou
        shapes = {"input.1": (1, 3, self.height, self.width)}
        file = "centerface_exits_dynamic.onnx" if exits else "centerface_dynamic.onnx"
        self.networks = (Network(file, shapes),)

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        canvas, placement = letterbox(image, self.width, self.height)
        return [Prepared({"input.1": planes(canvas, rgb=True)}, placement)]

    def decode(
        self, stage: int, outputs: Mapping[str, np.ndarray], context: Letterbox
    ) -> list[Detection]:
        heat = outputs["537"][0, 0]
        rows, columns = np.nonzero(heat > self.score)
        scores = heat[rows, columns]
        high, wide = np.exp(outputs["538"][0][:, rows, columns]) * STRIDE
        down, across = outputs["539"][0][:, rows, columns]
        left = (columns + across + 0.5) * STRIDE - wide / 2
        top = (rows + down + 0.5) * STRIDE - high / 2
        boxes = np.stack([left, top, left + wide, top + high], axis=1)
        kept = nms(boxes, scores, self.iou)
        marks = outputs["540"][0][:, rows[kept], columns[kept]].T.reshape(-1, 5, 2)
        corner = np.stack([left, top], axis=1)[kept, None]
        points = marks[:, :, ::-1] * np.stack([wide, high], axis=1)[kept, None] + corner
        found = []
        frame_boxes = context.boxes_to_frame(boxes[kept]).tolist()
        for index, box, mark in zip(kept, frame_boxes, context.to_frame(points), strict=True):
            left_x, top_y, right_x, bottom_y = box
            area = (left_x, top_y, right_x, bottom_y)
            found.append(Detection("face", float(scores[index]), area, mark))
        return found
