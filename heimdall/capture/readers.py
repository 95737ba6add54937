"""What OpenCV reads: streams, video files, still images and cameras, behind one small protocol.

They block as their drivers please; ``heimdall.capture.source`` calls them from a thread of its own.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np

from heimdall.errors import DeviceError

STREAM_TIMEOUT_MS = 8000
PICTURES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}


class Reader(Protocol):
    """A source as the capture thread sees it. Calls may block; they come from one thread."""

    fps: float  # > 0: paced at this rate; 0: live, every read waits for a new frame
    live: bool  # the end of a live source is a failure, to be retried

    def read(self) -> np.ndarray | None:
        """The next frame, BGR uint8; None at the end or on failure."""

    def skip(self) -> bool:
        """Pass over a frame as cheaply as possible."""

    def rewind(self) -> bool:
        """Back to the first frame; False where that is impossible."""

    def close(self) -> None:
        """Release the device or file."""


def open_clip(path: Path) -> Reader:
    """The frames of a video file. Raises DeviceError when none can be decoded."""
    # one decoding thread: 0.83 instead of 1.10 ms of CPU a 640x480 frame (2 x86 cores)
    settings = [cv2.CAP_PROP_N_THREADS, 1] if (os.cpu_count() or 1) <= 4 else []
    return CvReader(str(path), f"video {path.name} ({path})", False, cv2.CAP_ANY, settings)


def open_still(path: Path) -> Reader:
    """A picture file. Raises DeviceError when it cannot be decoded."""
    image = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise DeviceError(f"cannot decode image {path}; it is damaged or no picture")
    return _Still(image)


def open_stream(url: str) -> Reader:
    """What a URL streams. Raises DeviceError when nothing answers."""
    timeouts = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, STREAM_TIMEOUT_MS]
    timeouts += [cv2.CAP_PROP_READ_TIMEOUT_MSEC, STREAM_TIMEOUT_MS]
    return CvReader(url, f"stream {without_password(url)}", True, cv2.CAP_FFMPEG, timeouts)


def camera_likely(index: int) -> bool:
    """False where the system shows that there is none: opening would only print warnings."""
    return sys.platform != "linux" or Path(f"/dev/video{index}").exists()


def without_password(url: str) -> str:
    """A URL, or a pipeline that holds one, as it may be shown."""
    return re.sub(r"\b(user-pw|passphrase)=\S+", r"\1=...", re.sub(r"//[^/@]*@", "//", url))


class CvReader:
    """What cv2.VideoCapture reads: a camera, a stream or a clip."""

    def __init__(
        self, target: str | int, name: str, live: bool, backend: int, settings: list[int]
    ) -> None:
        # else libav writes its complaints about slightly broken clips to standard error
        os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "8")
        self.live = live
        self._numbered = isinstance(target, int)
        self._open = lambda: _opened(target, backend, settings)
        self._capture = self._open()
        if not self._capture.isOpened():
            self._capture.release()
            raise DeviceError(f"cannot open {name}{_hint(target, live)}")
        self.fps = 0.0 if live else _sane_fps(self._capture.get(cv2.CAP_PROP_FPS))
        self._first: np.ndarray | None = None
        if not live:
            ok, self._first = self._capture.read()
            if not ok:
                self._capture.release()
                raise DeviceError(f"cannot decode {name}: it holds no readable frame")

    def read(self) -> np.ndarray | None:
        if self._first is not None:
            image, self._first = self._first, None
            return image
        ok, image = self._capture.read()
        return image if ok else None

    def skip(self) -> bool:
        return bool(self._capture.grab())

    def rewind(self) -> bool:
        if not self._capture.set(cv2.CAP_PROP_POS_FRAMES, 0):
            self._capture.release()
            self._capture = self._open()
        return self._capture.isOpened()

    def close(self) -> None:
        self._capture.release()

    def get(self, setting: int) -> float:
        """The value of a ``cv2.CAP_PROP_...``; 0 or less where it is not known."""
        return float(self._capture.get(setting))

    @property
    def taken_ns(self) -> int | None:
        """When a camera took the last frame, as its driver says (Linux; ``time.perf_counter_ns``
        counts as it does there); None where it does not say."""
        if not self.live or not self._numbered or sys.platform != "linux":
            return None
        return round(self.get(cv2.CAP_PROP_POS_MSEC) * 1e6) or None


class _Still:
    """One decoded picture, for ever."""

    fps = 0.0
    live = False

    def __init__(self, image: np.ndarray) -> None:
        self._image = image

    def read(self) -> np.ndarray | None:
        return self._image

    def skip(self) -> bool:
        return False

    def rewind(self) -> bool:
        return True

    def close(self) -> None:
        pass


def _opened(target: str | int, backend: int, settings: list[int]) -> cv2.VideoCapture:
    capture = cv2.VideoCapture(target, backend, settings)
    if not capture.isOpened() and not isinstance(target, str):
        # A camera's backend gives up at the first setting that it refuses: what it takes is set one
        # by one. A stream keeps them: they are its timeouts.
        capture.release()
        capture = cv2.VideoCapture(target, backend)
        for setting, value in zip(settings[::2], settings[1::2], strict=True):
            capture.set(setting, value)
    return capture


def _hint(target: str | int, live: bool) -> str:
    if isinstance(target, int):
        return "; is it plugged in, and free?"
    return "; is it reachable?" if live else "; it is damaged, or no video"


def _sane_fps(fps: float) -> float:
    """Some containers claim 0, 1000 or 90000 frames a second."""
    return fps if 1 <= fps <= 240 else 30.0
