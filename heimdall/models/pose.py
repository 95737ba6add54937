"""Body pose by MoveNet: 17 joints of the person nearest to the middle of the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import Letterbox, inside, letterbox
from heimdall.models.results import Body

SIDE = 192
CELLS = 48
JOINTS = (
    "nose", "left eye", "right eye", "left ear", "right ear", "left shoulder", "right shoulder",
    "left elbow", "right elbow", "left wrist", "right wrist", "left hip", "right hip",
    "left knee", "right knee", "left ankle", "right ankle",
)  # fmt: skip
_BONES = (
    ("left shoulder", "right shoulder"), ("left hip", "right hip"),
    ("left shoulder", "left hip"), ("right shoulder", "right hip"),
    ("left shoulder", "left elbow"), ("left elbow", "left wrist"),
    ("right shoulder", "right elbow"), ("right elbow", "right wrist"),
    ("left hip", "left knee"), ("left knee", "left ankle"),
    ("right hip", "right knee"), ("right knee", "right ankle"),
    ("nose", "left eye"), ("nose", "right eye"),
    ("left eye", "left ear"), ("right eye", "right ear"),
)  # fmt: skip
BONES = tuple((JOINTS.index(start), JOINTS.index(end)) for start, end in _BONES)
NEAR = 1.8  # cells: how sharply a joint's peak must agree with its regression
_HEAD = "StatefulPartitionedCall/"
_ROWS, _COLUMNS = (grid.astype(np.float32) for grid in np.mgrid[0:CELLS, 0:CELLS])
_MIDDLE = 1 / (np.hypot(_ROWS - (CELLS - 1) / 2, _COLUMNS - (CELLS - 1) / 2) + NEAR)


class MoveNet(Pipeline[list[Body]]):
    """Result: list[Body], one body or none. ``score`` is the smallest mean score of its joints.

    Request option ``region``, a box (left, top, right, bottom) in frame pixels: look there only,
    such as at one person of several.
    """

    networks = (Network("pose_movenet_lightning_192.onnx"),)

    def __init__(self, score: float = 0.15) -> None:
        self.score = score

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        left, top, right, bottom = inside(options.get("region"), image)
        part = image[top:bottom, left:right]
        canvas, placement = letterbox(part, SIDE, SIDE, centred=True)
        rgb = cv2.cvtColor(canvas, cv2.COLOR_BGR2RGB)
        return [Prepared({"input:0": rgb.astype(np.int32)[None]}, (placement, (left, top)))]

    def decode(
        self,
        stage: int,
        outputs: Mapping[str, np.ndarray],
        context: tuple[Letterbox, tuple[int, int]],
    ) -> list[Body]:
        placement, corner = context
        heat = outputs[_HEAD + "Sigmoid"][0]
        centre = outputs[_HEAD + "Sigmoid_1"][0, :, :, 0] * _MIDDLE
        shifts = outputs[_HEAD + "kpt_regress_0/conv2d_6/BiasAdd"][0]
        offsets = outputs[_HEAD + "kpt_offset_0/conv2d_7/BiasAdd"][0].reshape(CELLS, CELLS, -1, 2)
        row, column = np.unravel_index(int(centre.argmax()), centre.shape)
        guess = shifts[row, column].reshape(-1, 2) + np.array([row, column], np.float32)
        far = np.hypot(_ROWS[..., None] - guess[:, 0], _COLUMNS[..., None] - guess[:, 1])
        peaks = (heat / (far + NEAR)).reshape(-1, len(JOINTS)).argmax(axis=0)
        rows, columns = np.unravel_index(peaks, (CELLS, CELLS))
        joint = np.arange(len(JOINTS))
        scores = heat[rows, columns, joint]
        if scores.mean() < self.score:
            return []
        exact = np.stack([columns, rows], axis=1) + offsets[rows, columns, joint][:, ::-1]
        points = placement.to_frame(exact * (SIDE / CELLS)) + corner
        return [Body(np.column_stack([points, scores]).astype(np.float32))]
