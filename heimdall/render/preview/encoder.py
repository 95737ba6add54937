"""Frames of the GPU on their way to pages, on a thread that nothing waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import cv2
import numpy as np

from heimdall.system.faults import Fallible, Faults, say
from heimdall.system.priority import lower_priority
from heimdall.system.workers import Workers

QUALITY = 75  # beyond it files grow faster than pictures improve
NICE = 5  # as the pool: behind it, on a busy core, viewers would see two pictures a second
PROMPT = 0  # where latency counts: a phone that is held shows at once how late pictures are

T = TypeVar("T")


@dataclass(frozen=True)
class Drawn:
    """When a frame was drawn, and when the camera's picture in it was taken, both by
    ``time.perf_counter_ns``."""

    at_ns: int
    captured_ns: int = 0


@dataclass(frozen=True)
class Picture:
    """A frame as the page gets it."""

    jpeg: bytes
    size: tuple[int, int]
    drawn: Drawn


class Encoder(Fallible, Generic[T]):
    """Encodes the newest frame it was given: one that is not begun when the next comes is
    forgotten, and counted in ``overtaken``.

    ``encode(pixels, drawn)`` makes something of RGBA uint8 (h, w, 4), bottom row first;
    ``deliver`` is given that. Both are called on the encoder's thread, ``name``.
    """

    def __init__(
        self,
        name: str,
        encode: Callable[[np.ndarray, Drawn], T],
        deliver: Callable[[T], object],
        nice: int = NICE,
    ) -> None:
        self._encode, self._deliver = encode, deliver
        self._faults = Faults()
        self._waiting: deque[tuple[np.ndarray, Drawn] | None] = deque(maxlen=1)
        self.overtaken = 0
        self._worker = Workers(name, urgency=lambda: lower_priority(nice))

    def put(self, pixels: np.ndarray, drawn: Drawn) -> None:
        """Encode RGBA uint8 (h, w, 4), bottom row first; returns at once."""
        self.overtaken += len(self._waiting)
        self._waiting.append((pixels, drawn))
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
