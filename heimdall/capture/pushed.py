"""Frames that a host program hands in, instead of a camera or a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pictures import check_picture
from heimdall.capture.source import Frame
from heimdall.errors import ConfigError

_AHEAD_NS = 1_000_000_000  # clocks of cameras and computers differ a little


class PushedSource:
    """What ``push`` was given last, behind the same methods as any source. One thread only.

    Until the first frame, ``latest`` gives a black one of ``size`` (width, height).
    """

    live = True
    ended = False
    error: str | None = None
    errors: Sequence[str] = ()
    dropped = 0
    arrival = None  # the host decides when
    session: Mapping[str, Any] = {}

    def __init__(self, size: tuple[int, int]) -> None:
        width, height = size
        self._frame = Frame(np.zeros((height, width, 3), np.uint8), 0, 0)
        self._held: Frame | None = None
        self.observe: Callable[[Frame], None] | None = None
        self.name = "pushed frames"

    @property
    def empty(self) -> bool:
        """Whether no frame has come yet."""
        return self._frame.sequence == 0

    def push(
        self,
        image: np.ndarray,
        captured_ns: int | None = None,
        camera: Camera | None = None,
        motion: Motion | None = None,
    ) -> Frame:
        """A new frame: BGR uint8 (h, w, 3), not to be written to any more. ``captured_ns``: when it
        was taken (``time.perf_counter_ns``); None: now. ``camera``: what took it; None: a guess.
        ``motion``: what its sensors said then.

        Raises ConfigError for anything else, and for a frame older than the last.
        """
        captured_ns = time.perf_counter_ns() if captured_ns is None else captured_ns
        check_picture(image)
        captured_ns = _time_ns(captured_ns)
        if not self.empty and captured_ns <= self._frame.captured_ns:
            raise ConfigError(
                f"captured_ns={captured_ns} goes back in time: the last frame was taken at "
                f"{self._frame.captured_ns}"
            )
        frame = Frame(
            image,
            self._frame.sequence + 1,
            captured_ns,
            camera,  # type: ignore[arg-type]
        )
        if motion is not None:
            frame = replace(frame, camera=frame.camera.sensing(motion))
        if self.observe is not None:
            self.observe(frame)
        self._frame = frame
        return frame

    def latest(self) -> Frame:
        """The newest frame, or the one that is held."""
        return self._held or self._frame

    def wait_first(self, timeout_s: float) -> Frame:
        """The newest frame: it is there at once."""
        return self.latest()

    def number_from(self, sequence: int) -> None:
        """Count on from ``sequence``."""
        self._frame = Frame(self._frame.image, sequence, self._frame.captured_ns)

    def hold(self) -> None:
        """Give the present frame until ``release``."""
        self._held = self._frame

    def step(self) -> None:
        """While held: on to the newest frame."""
        if self._held is not None:
            self._held = self._frame

    def release(self) -> None:
        """End ``hold``."""
        self._held = None

    @property
    def held(self) -> bool:
        """True if ``latest`` gives the same frame for now."""
        return self._held is not None

    @property
    def flowing(self) -> bool:
        """True if there is a picture, and it is not held."""
        return not (self.empty or self.held)

    def inputs(self) -> list[dict[str, Any]]:
        """None: the host has its own."""
        return []

    def describe(self) -> str:
        """One phrase for people and reports."""
        height, width = self._frame.image.shape[:2]
        return f"{self.name}, {width}x{height}"

    def close(self) -> None:
        """Nothing to close."""


def _time_ns(value: object) -> int:
    """A time that has been, in ns. Raises ConfigError for anything else."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 0 <= value <= time.perf_counter_ns() + _AHEAD_NS:  # type: ignore[operator]
        raise ConfigError(
            "captured_ns must be a time in ns, as time.perf_counter_ns gives it, and not lie "
            f"ahead: not {value!r}"
        )
    return int(value)  # type: ignore[call-overload, no-any-return]
