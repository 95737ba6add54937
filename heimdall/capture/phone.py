"""Pictures of a phone's camera and the sound of its microphone, which come by network: from whoever
receives them to the threads that capture."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.sound import PushedReader
from heimdall.errors import DeviceError

OPUS_RATE = 48_000  # of the sound that browsers send (RFC 7587)
NOBODY = "no phone is here: open the address that was printed, or scan its code"


class PhoneSound(PushedReader):
    """Sound of whichever phone drives. While none does nothing is missed: ``driven`` tells, and is
    for any thread, as ``put`` is."""

    def __init__(self) -> None:
        super().__init__("the phone gives no sound: allow its page to use the microphone")
        self.driven = False

    def read(self) -> tuple[np.ndarray, int, int] | None:
        try:
            return super().read()
        except DeviceError:
            if self.driven:
                raise
            return np.zeros(0, np.float32), OPUS_RATE, time.perf_counter_ns()


@dataclass(frozen=True, eq=False)
class Taken:
    """One picture: ``unpack()`` gives it, BGR uint8 (h, w, 3); ``captured_ns`` is when it was
    taken, by ``time.perf_counter_ns``; ``seen_by`` adds what the phone said then to its camera."""

    unpack: Callable[[], np.ndarray]
    captured_ns: int
    seen_by: Callable[[Camera], Camera] = lambda camera: camera


class PhonePictures:
    """The newest picture of whichever phone is there; one that nobody has read by then is
    forgotten. A ``Reader`` of the capture thread; ``put`` and ``absent`` are for any thread.

    Until the first picture of the phone there is a dark one of ``size`` (width, height).
    """

    fps, live = 0.0, True

    def __init__(self, size: tuple[int, int]) -> None:
        self._first: np.ndarray | None = np.zeros((size[1], size[0], 3), np.uint8)
        self._newest: Taken | None = None
        self._changed = threading.Condition()
        self._ended = False
        self.absent = NOBODY  # why nothing comes; "" while something should
        self.taken_ns: int | None = None  # of the last picture that was read
        self.seen_by: Callable[[Camera], Camera] = lambda camera: camera  # adds what it said then
        self.overtaken = 0  # pictures that were forgotten for newer ones
        self.undecoded = 0  # that were left out while decoding was behind

    def put(self, taken: Taken) -> None:
        """A picture has come."""
        with self._changed:
            self.overtaken += self._newest is not None
            self._newest, self.absent = taken, ""
            self._changed.notify_all()

    def read(self) -> np.ndarray | None:
        """The newest picture that was not read yet, waited for; None once ``end`` was called."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._ended)
            taken, self._newest = self._newest, None
        if taken is None:
            return None
        self.taken_ns, self.seen_by = taken.captured_ns, taken.seen_by
        return taken.unpack()

    def skip(self) -> bool:
        """Only clips are behind."""
        return False

    def rewind(self) -> bool:
        """There is no going back."""
        return False

    def end(self) -> None:
        """No more pictures: whoever waits need not."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """The phone is not this thread's to close."""
