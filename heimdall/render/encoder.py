"""Frames of the GPU on their way to others, on a thread that nothing waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from heimdall.system.faults import Fallible, Faults, say
from heimdall.system.priority import lower_priority
from heimdall.system.workers import Workers

NICE = 5  # as the pool: behind it, on a busy core, viewers would see two pictures a second
PROMPT = 0  # where latency counts: a phone that is held shows at once how late pictures are

T = TypeVar("T")


@dataclass(frozen=True)
class Drawn:
    """When a frame was drawn, and when the camera's picture in it was taken, both by
    ``time.perf_counter_ns``."""

    at_ns: int
    captured_ns: int = 0


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
        self._name, self._encode, self._deliver = name, encode, deliver
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
            self._faults.report(f"{self._name}: a frame was lost: {say(error)}", error)
