"""Frames of the GPU to JPEG, on a thread that nothing waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.system.faults import Fallible, Faults, say
from heimdall.system.priority import lower_priority
from heimdall.system.workers import Workers

QUALITY = 75  # beyond it files grow faster than pictures improve
_NICE = 5  # as the pool: behind it, on a busy core, viewers would see two pictures a second


@dataclass(frozen=True)
class Picture:
    """A frame as the page gets it."""

    jpeg: bytes
    size: tuple[int, int]
    drawn_s: float  # on time.monotonic's clock


class Encoder(Fallible):
    """Encodes the newest frame it was given: one that is not begun when the next comes is
    forgotten. ``deliver(picture)`` is called on the encoder's thread."""

    def __init__(self, deliver: Callable[[Picture], None]) -> None:
        self._deliver = deliver
        self._faults = Faults()
        self._waiting: deque[tuple[np.ndarray, float] | None] = deque(maxlen=1)
        self._bgr = self._upright = np.empty((0, 0, 3), np.uint8)  # kept: new memory costs time
        self._worker = Workers("preview-encoder", urgency=lambda: lower_priority(_NICE))

    def put(self, pixels: np.ndarray, drawn_s: float) -> None:
        """Encode RGBA uint8 (h, w, 4), bottom row first; returns at once."""
        self._waiting.append((pixels, drawn_s))
        self._worker.submit(self._encode_newest)

    def close(self) -> None:
        """End the thread; what waits is forgotten."""
        self._waiting.append(None)
        self._worker.close()

    def _encode_newest(self) -> None:
        work = self._waiting.pop() if self._waiting else None
        if work is None:  # a call before took what this one was for
            return
        try:
            self._deliver(self._encode(*work))
        except Exception as error:
            self._faults.report(f"a frame of the preview was lost: {say(error)}", error)

    def _encode(self, pixels: np.ndarray, drawn_s: float) -> Picture:
        h, w = pixels.shape[:2]
        if self._bgr.shape[:2] != (h, w):
            self._bgr, self._upright = (np.empty((h, w, 3), np.uint8) for _ in range(2))
        cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGR, dst=self._bgr)
        cv2.flip(self._bgr, 0, dst=self._upright)  # GL counts rows upwards
        _, jpeg = cv2.imencode(".jpg", self._upright, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        return Picture(jpeg.tobytes(), (w, h), drawn_s)
