"""Person segmentation by MediaPipe's selfie network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import shrink, unit_rgb
from heimdall.models.results import Mask

SIDE = 256


class Selfie(Pipeline):
    """Result: Mask of 256 x 256 cells: the probability of "person", stretched over the frame.

    The network is trained on frames stretched to a square, so no letterbox.
    """

    networks = (Network("seg_selfie_256.onnx"),)

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        return [Prepared({"input_1:0": unit_rgb(shrink(image, SIDE, SIDE))})]

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Mask:
        return Mask(np.array(outputs["activation_10:0"][0, :, :, 0], np.float32))
