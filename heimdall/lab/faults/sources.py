"""Faults of a camera: one that is played from the app's clip, and spoils what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from heimdall.capture.kinds import SOURCES
from heimdall.capture.readers import Reader, open_clip
from heimdall.errors import DeviceError
from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.trial import Trial
from heimdall.system import paths

KIND = "rehearsed"  # of source, in the process of such a run
_INTERVAL_S = 1 / 30

Spoil = Callable[[Moment, np.ndarray], np.ndarray | None]


class RehearsedCamera:
    """A camera of 30 pictures a second."""

    fps, live = 0.0, True

    def __init__(self, clip: Path, spoil: Callable[[np.ndarray], np.ndarray | None]) -> None:
        self._clip, self._spoil = open_clip(clip), spoil
        self._due_s = time.perf_counter()

    def read(self) -> np.ndarray | None:
        """The next picture, when it is due."""
        self._due_s = max(self._due_s + _INTERVAL_S, time.perf_counter())
        time.sleep(max(0.0, self._due_s - time.perf_counter()))
        image = self._clip.read()
        if image is None and self._clip.rewind():
            image = self._clip.read()
        return None if image is None else self._spoil(image)

    def skip(self) -> bool:
        """It waits for nobody."""
        return False

    def rewind(self) -> bool:
        """There is no way back."""
        return False

    def close(self) -> None:
        """Close the clip."""
        self._clip.close()


def _camera(spoil: Spoil, gone: bool = False, once: bool = False) -> Callable[[Moment], None]:
    """``spoil`` its pictures while the fault is there, or only the first; ``gone``: it cannot be
    opened meanwhile."""

    def inject(moment: Moment) -> None:
        def spoilt(image: np.ndarray) -> np.ndarray | None:
            if moment.first() if once else moment.active:
                moment.acted()
                return spoil(moment, image)
            return image

        def opened(rest: str, **wishes: Any) -> Reader:
            if gone and moment.active:
                raise DeviceError(f"cannot open camera {rest}; is it plugged in, and free?")
            return RehearsedCamera(paths.ASSETS / "media" / moment.app.clip, spoilt)

        SOURCES.register(KIND, opened)

    return inject


def _arguments(trial: Trial) -> Sequence[str]:
    return ("--source", f"{KIND}:0")


def _stall(moment: Moment, image: np.ndarray) -> np.ndarray:
    moment.wait_until_over()
    return image


def _gone(moment: Moment, image: np.ndarray) -> None:
    return None


def _garbage(moment: Moment, image: np.ndarray) -> np.ndarray:
    return np.random.default_rng().integers(0, 256, image.shape, np.uint8)


def _smaller(moment: Moment, image: np.ndarray) -> np.ndarray:
    height, width = image.shape[:2]
    return cv2.resize(image, (width // 2, height // 2))


def _with_alpha(moment: Moment, image: np.ndarray) -> np.ndarray:
    return cv2.cvtColor(image, cv2.COLOR_BGR2BGRA)


def _floats(moment: Moment, image: np.ndarray) -> np.ndarray:
    return image.astype(np.float32) / 255


def _empty(moment: Moment, image: np.ndarray) -> np.ndarray:
    return image[:0, :0]


def _of_camera(name: str, what: str, inject: Callable[[Moment], None], **more: Any) -> Fault:
    return Fault(name, what, inject, arguments=_arguments, **more)


FAULTS = (
    _of_camera(
        "camera-stalls", "The camera gives nothing.", _camera(_stall, once=True), blind=True
    ),
    _of_camera(
        "camera-unplugged", "The camera is unplugged.", _camera(_gone, gone=True), blind=True
    ),
    _of_camera("camera-garbage", "The camera gives noise.", _camera(_garbage), told=False),
    _of_camera("camera-size", "The camera's pictures are smaller.", _camera(_smaller), told=False),
    _of_camera(
        "frame-bgra",
        "One picture has four channels.",
        _camera(_with_alpha, once=True),
        told=False,  # it is converted
    ),
    _of_camera("frame-float", "One picture is of floats.", _camera(_floats, once=True)),
    _of_camera("frame-empty", "One picture is 0x0.", _camera(_empty, once=True)),
)
