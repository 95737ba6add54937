"""Frames as pictures, for pages that take no video."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.render.encoder import Drawn

QUALITY = 75  # beyond it files grow faster than pictures improve


@dataclass(frozen=True)
class Picture:
    """A frame as the page gets it."""

    jpeg: bytes
    size: tuple[int, int]
    drawn: Drawn


class Jpegs:
    """Each frame for itself."""

    def __init__(self) -> None:
        self._bgr = self._upright = np.empty((0, 0, 3), np.uint8)  # kept: new memory costs time

    def __call__(self, pixels: np.ndarray, drawn: Drawn) -> Picture:
        """RGBA uint8 (h, w, 4), bottom row first, as JPEG."""
        h, w = pixels.shape[:2]
        if self._bgr.shape[:2] != (h, w):
            self._bgr, self._upright = (np.empty((h, w, 3), np.uint8) for _ in range(2))
        cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGR, dst=self._bgr)
        cv2.flip(self._bgr, 0, dst=self._upright)  # GL counts rows upwards
        _, jpeg = cv2.imencode(".jpg", self._upright, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        return Picture(jpeg.tobytes(), (w, h), drawn)
