"""Hands in two stages: MediaPipe's palm detector, then 21 points of each hand from a crop.

The crop is turned so that wrist to middle knuckle points up, as the landmark network expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from heimdall.models import crop
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.detect import cell_centres
from heimdall.models.letterbox import Letterbox, letterbox, unit_rgb
from heimdall.models.nms import nms, pairwise_iou
from heimdall.models.results import Hand

PALM_SIDE = 192
HAND_SIDE = 224
ANCHORS_PER_CELL = ((8, 2), (16, 6))  # stride, anchors of every cell
WRIST, MIDDLE_KNUCKLE = 0, 2  # key points of a palm
REACH = 2.6  # side of the crop over that of the palm's box
DEPTH = 0.4  # how much of a pixel across the network's unit of depth is, as MediaPipe has it
LIFT = 0.5  # the crop's centre lies this many box heights towards the fingers


@dataclass(frozen=True)
class Palm:
    """A palm in frame pixels: box (left, top, right, bottom), key points (7, 2), score."""

    box: np.ndarray
    points: np.ndarray
    score: float


# Cell centres (2016, 2) in 0..1, as often as each cell has anchors.
_ANCHORS = np.concatenate(
    [
        np.repeat(cell_centres(stride, PALM_SIDE, PALM_SIDE) / PALM_SIDE, count, axis=0)
        for stride, count in ANCHORS_PER_CELL
    ]
)


class Hands(Pipeline[list[Hand]]):
    """Result: list[Hand], at most ``most``, best palm first.

    ``score`` is the smallest palm score, ``presence`` the smallest score of the landmarks: a hand
    that holds something hides half its fingers and scores 0.3-0.6 though its points sit right.
    """

    networks = (Network("hand_palm_lite_192.onnx"), Network("hand_landmark_lite_224.onnx"))

    def __init__(self, most: int = 2, score: float = 0.5, presence: float = 0.3) -> None:
        self.most, self.score, self.presence = most, score, presence
        # scores come as logits: comparing there saves a sigmoid over every anchor
        with np.errstate(divide="ignore"):  # 0 and 1: -inf and inf
            self._logit = float(np.log(score) - np.log1p(-score))

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        if stage == 0:
            canvas, placement = letterbox(image, PALM_SIDE, PALM_SIDE, centred=True)
            return [Prepared({"input_1": unit_rgb(canvas)}, placement)]
        crops = []
        for palm in previous[0]:
            to_crop = crop_transform(palm)
            # without crop.cut's half pixel, which brought no point nearer to MediaPipe's own
            part = cv2.warpAffine(image, to_crop, (HAND_SIDE, HAND_SIDE), flags=cv2.INTER_LINEAR)
            crops.append(Prepared({"input_1": unit_rgb(part)}, to_crop))
        return crops

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Any:
        """Stage 0: list[Palm]; stage 1: a Hand, or None where the crop shows none."""
        return self._palms(outputs, context) if stage == 0 else self._hand(outputs, context)

    def combine(self, results: Sequence[Sequence[Any]], image: np.ndarray) -> list[Hand]:
        hands = [hand for hand in results[1] if hand is not None] if len(results) > 1 else []
        return _distinct(hands)

    def _palms(self, outputs: Mapping[str, np.ndarray], placement: Letterbox) -> list[Palm]:
        logits = outputs["Identity_1"][0, :, 0]
        chosen = np.flatnonzero(logits > self._logit)
        raw = outputs["Identity"][0, chosen].reshape(-1, 9, 2) / PALM_SIDE
        raw[:, 0] += _ANCHORS[chosen]  # centre
        raw[:, 2:] += _ANCHORS[chosen, None]  # key points; row 1 is width and height
        half = raw[:, 1] / 2
        boxes = np.concatenate([raw[:, 0] - half, raw[:, 0] + half], axis=1)
        kept = nms(boxes, logits[chosen], 0.3)[: self.most]
        # not cut at the frame's edge: the crop of a palm that leaves it is still centred on it
        corners = placement.to_frame(boxes[kept].reshape(-1, 2, 2) * PALM_SIDE).reshape(-1, 4)
        points = placement.to_frame(raw[kept, 2:] * PALM_SIDE)
        scores = 1 / (1 + np.exp(-logits[chosen[kept]]))
        return [
            Palm(box, point, float(score))
            for box, point, score in zip(corners, points, scores, strict=True)
        ]

    def _hand(self, outputs: Mapping[str, np.ndarray], to_crop: np.ndarray) -> Hand | None:
        presence = float(outputs["Identity_1"][0, 0])
        if presence < self.presence:
            return None
        raw = outputs["Identity"].reshape(21, 3) * np.array([1, 1, 1 / DEPTH], np.float32)
        points = crop.to_frame(raw, to_crop)
        world = crop.turned_to_frame(outputs["Identity_3"].reshape(21, 3), to_crop)
        # the network was trained on mirrored selfies, where a right hand looks like a left one
        side = "left" if outputs["Identity_2"][0, 0] > 0.5 else "right"
        return Hand(points, presence, side, world)


def crop_transform(palm: Palm) -> np.ndarray:
    """The affine map (2, 3) from frame pixels to the upright 224 x 224 crop around a hand."""
    up = palm.points[MIDDLE_KNUCKLE] - palm.points[WRIST]
    up = up / max(float(np.hypot(up[0], up[1])), 1e-6)
    width, height = palm.box[2:] - palm.box[:2]
    centre = (palm.box[:2] + palm.box[2:]) / 2 + up * LIFT * height
    return crop.upright(centre, up, REACH * float(max(width, height)), HAND_SIDE)


def _distinct(hands: Sequence[Hand]) -> list[Hand]:
    """Two palms found on one hand give the same points twice: keep the first."""
    if len(hands) < 2:
        return list(hands)
    boxes = np.stack(
        [np.concatenate([h.points[:, :2].min(axis=0), h.points[:, :2].max(axis=0)]) for h in hands]
    )
    overlaps = pairwise_iou(boxes) > 0.5
    return [hand for index, hand in enumerate(hands) if not overlaps[index, :index].any()]
