"""A body in two stages: MoveNet says where it is, then MediaPipe's 33 joints of it, in the picture
and in metres.

The second network wants the person upright in the middle of its input, the hips at the centre, with
room for stretched arms and legs. What of that MoveNet does not see, as the legs of a person at a
desk, is put where an average person has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from heimdall.models import crop
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import inside, unit_rgb
from heimdall.models.pose import JOINTS as SEVENTEEN
from heimdall.models.pose import MoveNet
from heimdall.models.results import Body, Body3D

SIDE = 256
JOINTS = (
    "nose", "left eye inner", "left eye", "left eye outer", "right eye inner", "right eye",
    "right eye outer", "left ear", "right ear", "mouth left", "mouth right", "left shoulder",
    "right shoulder", "left elbow", "right elbow", "left wrist", "right wrist", "left pinky",
    "right pinky", "left index", "right index", "left thumb", "right thumb", "left hip",
    "right hip", "left knee", "right knee", "left ankle", "right ankle", "left heel",
    "right heel", "left foot", "right foot",
)  # fmt: skip
_BONES = (
    "nose-left eye inner-left eye-left eye outer-left ear",
    "nose-right eye inner-right eye-right eye outer-right ear",
    "mouth left-mouth right",
    "left shoulder-right shoulder-right hip-left hip-left shoulder",
    "left shoulder-left elbow-left wrist-left pinky-left index-left wrist-left thumb",
    "right shoulder-right elbow-right wrist-right pinky-right index-right wrist-right thumb",
    "left hip-left knee-left ankle-left heel-left foot-left ankle",
    "right hip-right knee-right ankle-right heel-right foot-right ankle",
)
BONES = tuple(
    (JOINTS.index(start), JOINTS.index(end))
    for chain in (text.split("-") for text in _BONES)
    for start, end in pairwise(chain)
)
SURE = 0.3  # MoveNet's score of a joint that counts
TORSO = 1.35  # hips to shoulders, over the width of the shoulders
REACH = 1.1  # half of the crop's side over the way to the farthest joint
LEAST_REACH = 2.35  # half of the crop's side in torsos: feet and hands of a person upright
PEAK_CELLS, PEAK_SCORE = 7, 0.5  # a joint follows the peak of its heat map, where that is clear


class Bodies(Pipeline[list[Body3D]]):
    """Result: list[Body3D], one body or none. ``score`` is the smallest mean score of MoveNet's
    joints, ``presence`` the smallest of the 33.

    Request option ``region``, a box (left, top, right, bottom) in frame pixels: look there only,
    such as at one person of several (in a group, joints are five times as near to
    MediaPipe's own for it).
    """

    def __init__(self, score: float = 0.15, presence: float = 0.5) -> None:
        self._where, self.presence = MoveNet(score), presence
        self.networks = (*self._where.networks, Network("pose_landmark_full_256.onnx"))

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        if stage == 0:
            return self._where.prepare(0, image, previous, options)
        left, top, right, bottom = inside(options.get("region"), image)
        part = image[top:bottom, left:right]  # a person beside it would be taken for a limb
        tasks = []
        for to_crop in map(body_crop, previous[0]):
            from_part = to_crop.copy()
            from_part[:, 2] += to_crop[:, :2] @ (left, top)
            tasks.append(Prepared({"input_1": unit_rgb(crop.cut(part, from_part, SIDE))}, to_crop))
        return tasks

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Any:
        """Stage 0: list[Body]; 1: a Body3D, or None where the crop shows no person."""
        if stage == 0:
            return self._where.decode(0, outputs, context)
        presence = float(outputs["Identity_1"].flat[0])
        if presence < self.presence:
            return None
        raw = outputs["Identity"].reshape(-1, 5)[: len(JOINTS)]
        points = follow_peaks(raw[:, :3], outputs["Identity_3"][0, :, :, : len(JOINTS)])
        visible = 1 / (1 + np.exp(-raw[:, 3:4]))
        joints = np.column_stack([crop.to_frame(points, context), visible])
        metres = outputs["Identity_4"].reshape(-1, 3)[: len(JOINTS)]
        world = crop.turned_to_frame(metres, context)
        return Body3D(joints.astype(np.float32), world, presence)

    def combine(self, results: Sequence[Sequence[Any]], image: np.ndarray) -> list[Body3D]:
        return [body for body in results[1] if body is not None] if len(results) > 1 else []


def body_crop(body: Body) -> np.ndarray:
    """The map (2, 3) to the upright 256 x 256 crop around a body of 17 joints."""
    joints = body.joints

    def middle(name: str) -> tuple[np.ndarray, bool]:
        pair = joints[[SEVENTEEN.index(f"{side} {name}") for side in ("left", "right")]]
        return pair[:, :2].mean(axis=0), bool(pair[:, 2].min() >= SURE)

    shoulders, _ = middle("shoulder")
    hips, seen = middle("hip")
    if not seen:
        left, right = joints[[SEVENTEEN.index("left shoulder"), SEVENTEEN.index("right shoulder")]]
        across = left[:2] - right[:2]  # their left is on the right, where they face the camera
        hips = shoulders + TORSO * np.array([-across[1], across[0]])
    up = shoulders - hips
    sure = joints[joints[:, 2] >= SURE, :2]
    far = float(np.hypot(*(sure - hips).T).max()) if len(sure) else 0.0
    half = max(REACH * far, LEAST_REACH * float(np.hypot(*up)))
    return crop.upright(hips, up, 2 * half, SIDE)


def follow_peaks(points: np.ndarray, heat: np.ndarray) -> np.ndarray:
    """Points (n, 3) in pixels of the input, each moved to the middle of what its heat map (rows,
    columns, n; logits) has around it, where that is sure of itself."""
    rows, columns, count = heat.shape
    scale = np.array([columns, rows]) / SIDE
    reach = PEAK_CELLS // 2
    found = points.astype(np.float32)
    for index in range(count):
        column, row = (points[index, :2] * scale).astype(int)
        if not (0 <= column < columns and 0 <= row < rows):
            continue
        top, left = max(row - reach, 0), max(column - reach, 0)
        part = heat[top : row + reach + 1, left : column + reach + 1, index]
        weights = 1 / (1 + np.exp(-part))
        if weights.max() < PEAK_SCORE:
            continue
        down, across = np.mgrid[: part.shape[0], : part.shape[1]]
        middle = np.array([(weights * (across + left)).sum(), (weights * (down + top)).sum()])
        found[index, :2] = middle / weights.sum() / scale
    return found
