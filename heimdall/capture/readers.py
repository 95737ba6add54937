"""Streams, video files, still images and cameras, behind one small protocol.

They block as their drivers please; ``heimdall.capture.source`` calls them from a thread of its own.
"""

from __future__ import annotations

import re
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np

from heimdall.capture.clips import ClipReader
from heimdall.capture.series import open_animation
from heimdall.errors import DeviceError

MP4 = "mov,mp4,m4a,3gp,3g2,mj2"  # AVIF and HEIC, too
NETPBM = rb"P[1-7Ff]\s"  # of PBM, PGM, PPM, PAM and PFM
_HEIF = {b"avif", b"heic", b"heix", b"mif1"}
_MOVES = 2  # a WebP's flag
LARGEST = 1 << 30  # file of a picture
# Files of one picture: what follows it there is ignored.
_STILLS = {f"{name}_pipe" for name in ("bmp", "j2k", "jpeg", "jpegls", "png", "tiff", "webp")}


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


def open_file(path: Path) -> Reader:
    """A clip or a picture, by what is in the file, not by its suffix: what has one frame is a
    picture. Raises DeviceError when none can be decoded."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) > 20 and head[20] & _MOVES:
        return open_animation(path, f"video {path.name}")
    try:
        clip = open_clip(path)
    except DeviceError:
        return _Still(_decoded(path, None, True), f"image {path.name}")
    several = clip.format == "mjpeg" and b"MPF\0" in head  # of the same moment (CIPA DC-007)
    if not (clip.single or several or clip.format in _STILLS):
        return clip
    with closing(clip):
        parts = head[8:12] in _HEIF and clip.tracks > 1  # tiles, or its opacity
        as_photograph = parts or not (clip.format == MP4 or re.match(NETPBM, head))
        return _Still(_decoded(path, clip, as_photograph, parts), f"image {path.name}")


def open_clip(path: Path) -> ClipReader:
    """The frames of a video file. Raises DeviceError when none can be decoded."""
    return ClipReader(str(path.absolute()), f"video {path.name} ({path})")


def read_picture(path: Path) -> np.ndarray:
    """The picture of a file, or a clip's first one, BGR uint8 (h, w, 3), upright. Raises
    DeviceError when none can be decoded."""
    try:
        with path.open("rb") as file:
            head = file.read(12)
        by_libav = head[8:] in _HEIF or re.match(NETPBM, head)
        if not by_libav and (image := _by_opencv(path)) is not None:
            return image
        with closing(open_file(path)) as reader:
            found = reader.read()
    except OSError as error:
        raise DeviceError(f"cannot read {path}: {error.strerror or error}") from error
    if found is None:
        raise DeviceError(f"cannot decode {path}; it is damaged, or no picture")
    return found


def _decoded(
    path: Path, clip: ClipReader | None, as_photograph: bool, parts: bool = False
) -> np.ndarray:
    """OpenCV turns photographs as their EXIF data says and puts tiles together; PyAV obeys the
    colours and turns of what is stored like a clip (AVIF), and a Netpbm's highest level (OpenCV
    takes 12 bits for 16, and swaps a PAM's colours), and knows more kinds."""
    image = _by_opencv(path) if as_photograph else None
    if image is None and parts:
        raise DeviceError(f"cannot decode {path}: its picture is in parts (HEIC); save it as JPEG")
    if image is None and clip is not None:
        image = clip.read()
    if image is None:
        raise DeviceError(f"cannot decode {path}; it is damaged, or no video and no picture")
    return image


def _by_opencv(path: Path) -> np.ndarray | None:
    if path.stat().st_size > LARGEST:
        return None
    with suppress(cv2.error):  # too many pixels
        return cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    return None


def open_stream(url: str) -> Reader:
    """What a URL streams, or the file that it is. Raises DeviceError when nothing answers."""
    return ClipReader(url, f"stream {without_password(url)}", of_url=True)


def camera_likely(index: int) -> bool:
    """False where the system shows that there is none: opening would only print warnings."""
    return sys.platform != "linux" or Path(f"/dev/video{index}").exists()


def without_password(url: str) -> str:
    """A URL, or a pipeline that holds one, as it may be shown."""
    return re.sub(r"\b(user-pw|passphrase)=\S+", r"\1=...", re.sub(r"//[^/@]*@", "//", url))


class CvReader:
    """What cv2.VideoCapture reads: a camera, or a pipeline of one."""

    fps, live = 0.0, True

    def __init__(self, target: str | int, name: str, backend: int, settings: list[int]) -> None:
        self._numbered = isinstance(target, int)
        self._capture = _opened(target, backend, settings)
        if not self._capture.isOpened():
            self._capture.release()
            hint = "is it plugged in, and free?" if self._numbered else "is it reachable?"
            raise DeviceError(f"cannot open {name}; {hint}")

    def read(self) -> np.ndarray | None:
        """The next picture; None where there is none."""
        ok, image = self._capture.read()
        return image if ok else None

    def skip(self) -> bool:
        """Pass over a picture."""
        return bool(self._capture.grab())

    def rewind(self) -> bool:
        """There is no way back."""
        return False

    def close(self) -> None:
        """Release the device."""
        self._capture.release()

    def get(self, setting: int) -> float:
        """The value of a ``cv2.CAP_PROP_...``; 0 or less where it is not known."""
        return float(self._capture.get(setting))

    @property
    def taken_ns(self) -> int | None:
        """When a camera took the last frame, as its driver says (Linux; ``time.perf_counter_ns``
        counts as it does there); None where it does not say."""
        if not self._numbered or sys.platform != "linux":
            return None
        return round(self.get(cv2.CAP_PROP_POS_MSEC) * 1e6) or None


class _Still:
    """One decoded picture, for ever."""

    fps = 0.0
    live = False

    def __init__(self, image: np.ndarray, name: str) -> None:
        self._image, self.name = image, name

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
        # by one.
        capture.release()
        capture = cv2.VideoCapture(target, backend)
        for setting, value in zip(settings[::2], settings[1::2], strict=True):
            capture.set(setting, value)
    return capture
