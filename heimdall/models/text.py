"""Text regions by PP-OCR's detector (differentiable binarisation)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import Letterbox, inside, letterbox, planes, sides
from heimdall.models.results import TextRegion

INK = 0.3  # probability above which a pixel belongs to a text's core
UNCLIP = 1.6  # the network draws shrunken texts: grow each by area * UNCLIP / perimeter
SMALLEST = 3.0  # input pixels
TALLEST = 0.25  # of the picture's height: what is taller is a dark object, not a line of text
MOST = 200  # a page of noise must not cost more than this many regions


@dataclass(frozen=True)
class TextCrop:
    """What of a frame the network saw: where its ``corner`` (x, y) is, how it lies in the input,
    and how tall a line may be, input pixels."""

    corner: tuple[int, int]
    placement: Letterbox
    tallest: float


class PPOCR(Pipeline[list[TextRegion]]):
    """Result: list[TextRegion], one a text line, from top to bottom.

    ``size`` = (height, width) of the input, multiples of 32: larger finds smaller text.

    Request option ``region``, a box (left, top, right, bottom) in frame pixels: look there only,
    and the closer.
    """

    size_step = 32

    def __init__(self, size: tuple[int, int] = (480, 640), score: float = 0.4) -> None:
        self.height, self.width = sides("ppocr size", size, self.size_step)
        self.score = score
        self.networks = (
            Network("ppocrv4_det_dynamic.onnx", {"x": (1, 3, self.height, self.width)}),
        )

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        left, top, right, bottom = inside(options.get("region"), image)
        canvas, placement = letterbox(image[top:bottom, left:right], self.width, self.height)
        part = TextCrop((left, top), placement, TALLEST * image.shape[0] * placement.scale)
        tensor = planes(canvas, rgb=False, scale=1 / 127.5)
        tensor -= 1.0
        return [Prepared({"x": tensor}, part)]

    def decode(
        self, stage: int, outputs: Mapping[str, np.ndarray], context: TextCrop
    ) -> list[TextRegion]:
        ink = outputs["sigmoid_0.tmp_0"][0, 0]
        core = (ink > INK).view(np.uint8)
        contours, _ = cv2.findContours(core, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        contours = sorted(contours, key=len, reverse=True)[:MOST]
        placement = context.placement
        found = []
        for contour in contours:
            middle, extent, angle = cv2.minAreaRect(contour)
            score = _mean_inside(ink, contour)
            if min(extent) < SMALLEST or score < self.score:
                continue
            grow = 2 * extent[0] * extent[1] * UNCLIP / (2 * (extent[0] + extent[1]))
            if min(extent) + grow > context.tallest:
                continue
            grown = (middle, (extent[0] + grow, extent[1] + grow), angle)
            corners = placement.to_frame(clockwise(cv2.boxPoints(grown)))
            corners = corners.clip(0, (placement.width, placement.height))
            found.append(TextRegion(corners + np.array(context.corner, np.float32), score))
        return sorted(found, key=lambda region: float(region.corners[0, 1]))


def clockwise(corners: np.ndarray) -> np.ndarray:
    """Corners (4, 2) of a rectangle in clockwise order on the screen from the top left one."""
    around = corners - corners.mean(axis=0)
    ordered = corners[np.argsort(np.arctan2(around[:, 1], around[:, 0]), kind="stable")]
    return np.roll(ordered, -int(ordered.sum(axis=1).argmin()), axis=0)


def _mean_inside(ink: np.ndarray, contour: np.ndarray) -> float:
    left, top, width, height = cv2.boundingRect(contour)
    inside = np.zeros((height, width), np.uint8)
    cv2.fillPoly(inside, [contour - (left, top)], 1)
    return float(cv2.mean(ink[top : top + height, left : left + width], inside)[0])
