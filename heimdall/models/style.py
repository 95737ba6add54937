"""Style transfer in 26 styles, freely mixed by weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np

from heimdall.errors import ConfigError
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import planes, shrink, sides
from heimdall.models.results import Picture

STYLES = 26


class MultiStyle(Pipeline[Picture]):
    """Result: Picture of the input size (``size`` = (height, width) pixels,
    multiples of 8).

    Request options, both falling back to the pipeline's own: ``style`` (0..25) or ``weights``
    (26 numbers, scaled to sum 1), and ``picture`` (BGR uint8), which is restyled instead of the
    frame.
    """

    size_step = 8

    def __init__(self, size: tuple[int, int] = (240, 320), style: int = 0) -> None:
        self.height, self.width = sides("multistyle size", size, self.size_step)
        self.weights = style_weights({"style": style})
        shapes = {"image": (1, 3, self.height, self.width), "style_weights": (STYLES,)}
        self.networks = (Network("multistyle26_dynamic.onnx", shapes),)

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        source = options.get("picture", image)
        tensor = planes(shrink(source, self.width, self.height), rgb=True, scale=1 / 255)
        weights = style_weights(options, self.weights)
        return [Prepared({"image": tensor, "style_weights": weights})]

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Picture:
        picture = outputs["stylized"][0].transpose(1, 2, 0)
        return Picture(cv2.convertScaleAbs(np.ascontiguousarray(picture), alpha=255))


def style_weights(options: Mapping[str, Any], default: np.ndarray | None = None) -> np.ndarray:
    """The 26 style weights, float32, sum 1, that ``style`` or ``weights`` ask for.

    Raises ConfigError for a style outside 0..25 and for weights that are not 26 finite,
    non-negative numbers with a positive sum.
    """
    if options.get("weights") is not None:
        return _scaled(options["weights"])
    style = options.get("style")
    if style is None and default is not None:
        return default
    if not isinstance(style, (int, np.integer)) or not 0 <= style < STYLES:
        raise ConfigError(f"style must be a whole number from 0 to {STYLES - 1}, not {style!r}")
    return np.eye(STYLES, dtype=np.float32)[style]


def _scaled(weights: Any) -> np.ndarray:
    try:
        values = np.asarray(weights, np.float32)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0, np.float32)
    if values.shape != (STYLES,) or not np.isfinite(values).all() or values.min() < 0:
        raise ConfigError(f"style weights must be {STYLES} finite numbers >= 0")
    if values.sum() <= 0:
        raise ConfigError("style weights are all zero; give at least one style a weight")
    return values / values.sum()
