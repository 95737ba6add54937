"""Person segmentation by MediaPipe's selfie network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import Letterbox, letterbox, unit_rgb
from heimdall.models.results import Mask

SIDE = 256


class Selfie(Pipeline[Mask]):
    """Result: Mask: the probability of "person", 256 cells along the frame's longer side.

    Letterboxed, and the bars cut off again: squashed to a square, as the network is often fed,
    a wide frame's table and box count as person wherever an arm is near (bundled box.mp4: mean
    0.64 instead of 0.06).
    """

    networks = (Network("seg_selfie_256.onnx"),)

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        canvas, placement = letterbox(image, SIDE, SIDE, centred=True)
        return [Prepared({"input_1:0": unit_rgb(canvas)}, placement)]

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Letterbox) -> Mask:
        width, height = context.inner
        rows = slice(context.top, context.top + height)
        columns = slice(context.left, context.left + width)
        # a copy: the engine reuses its output buffer
        return Mask(np.array(outputs["activation_10:0"][0, rows, columns, 0], np.float32))
