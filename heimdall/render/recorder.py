"""Records what was drawn, without making the frames wait.

The main thread asks the GPU to copy a frame into a pixel buffer and takes the copy of two
frames ago, which is ready; a thread of its own, below the others in priority, encodes. Where it
cannot keep up, frames are left out of the video, and the others keep their time.
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

import cv2
import moderngl
import numpy as np

from heimdall.errors import ConfigError, DeviceError
from heimdall.render.surface import Surface
from heimdall.render.video import NICE, VideoFile
from heimdall.system.paths import replace_file
from heimdall.system.priority import in_turn, lower_priority, second_in_line
from heimdall.system.workers import Workers

_IN_FLIGHT = 2  # frames between asking for a copy and taking it
_QUEUE = 16  # frames that wait for the encoder, 60 MB of 720p; then they are left out
_CLOSE_TIMEOUT_S = 30.0


class Copies:
    """Copies of the framebuffer on their way from the GPU; none waits for them. Buffers are kept
    for pictures of the newest size only. Main thread."""

    def __init__(self) -> None:
        self._buffers: list[moderngl.Buffer] = []
        self._size = 0  # bytes of the newest picture
        self._pending: deque[tuple[moderngl.Buffer, tuple[int, int], Surface, Any]] = deque()

    def ask(self, surface: Surface, tag: Any) -> None:
        """Start copying what the surface shows. Best called after ``finish``; waits for it else.
        ``tag`` comes with the copy."""
        # llvmpipe waits for the frame inside the copy, holding the interpreter lock: wait first.
        surface.wait()
        w, h = surface.size
        buffer = self._buffer(surface.ctx, w * h * 4)
        surface.pixels.read(surface.framebuffer, buffer)
        self._pending.append((buffer, (w, h), surface, tag))

    def take(self, leave: int = 0) -> tuple[np.ndarray, Any] | None:
        """The oldest copy, RGBA uint8 (h, w, 4), bottom row first, and its tag; None while at most
        ``leave`` are under way, and where the GPU hangs."""
        if self._pending and self._pending[0][2].hangs:
            self._pending.clear()
        if len(self._pending) <= leave:
            return None
        buffer, (w, h), surface, tag = self._pending.popleft()
        pixels = np.empty((h, w, 4), np.uint8)
        buffer.read_into(pixels)
        self._keep(buffer)
        return surface.pixels.in_order(pixels), tag

    def release(self) -> None:
        """Free the GPU's memory."""
        for buffer in (*self._buffers, *(buffer for buffer, *_ in self._pending)):
            buffer.release()
        self._buffers, self._pending = [], deque()

    def _buffer(self, ctx: moderngl.Context, size: int) -> moderngl.Buffer:
        if size != self._size:
            self._size = size
            for buffer in self._buffers:
                buffer.release()
            self._buffers = []
        return self._buffers.pop() if self._buffers else ctx.buffer(reserve=size)

    def _keep(self, buffer: moderngl.Buffer) -> None:
        """For the next picture, if it is of that size."""
        if buffer.size == self._size:
            self._buffers.append(buffer)
        else:
            buffer.release()


class Recorder:
    """Writes an MP4 of ``size``: a frame each call of ``add``, shown when it was drawn.

    Frames never wait: while the encoder is half a second behind they are left out (``dropped``),
    and the others keep their time. One of another size (a resized window) is scaled. ``written``:
    frames in the file so far. Raises ConfigError at once where the path cannot be written.
    """

    def __init__(self, path: str | Path, size: tuple[int, int], fps: float):
        self.path = Path(path)
        _check(self.path, fps)
        self.written = self.dropped = 0
        self._copies = Copies()
        self._room = threading.Semaphore(_QUEUE)
        self._video: VideoFile | None = None
        self._error: Exception | None = None
        self._opened, self._finished = threading.Event(), threading.Event()
        self._ended = False
        self._worker = Workers("recorder", urgency=lambda: lower_priority(NICE))
        # There: loading the encoder takes a while, and a video may begin at the press of a key.
        self._worker.submit(self._open, size, fps)

    def ready(self) -> None:
        """Return when frames can be encoded. Raises DeviceError where that cannot be."""
        self._opened.wait()
        if self._error is not None:
            self._worker.close()
        self._check()

    def add(self, surface: Surface, at_ns: int) -> None:
        """Record the surface's framebuffer as the frame of ``at_ns``, by any clock. Best called
        after ``finish``; waits for it else.

        Raises DeviceError once the recording has failed, of a full disk for example.
        """
        if self._ended:
            raise ConfigError(f"recording {self.path} is closed: no frame can be added")
        self._check()
        self._copies.ask(surface, at_ns)
        if (taken := self._copies.take(leave=_IN_FLIGHT)) is not None:
            self._hand_over(*taken)

    def end(self) -> None:
        """No more frames: what is under way is written in the background. Call it while the
        surface is open."""
        if self._ended:
            return
        self._ended = True
        while (taken := self._copies.take()) is not None:
            self._hand_over(*taken)
        self._worker.submit(self._finish)
        self._copies.release()

    def close(self) -> int:
        """``end``, and wait for it; returns how many frames the file has. Raises DeviceError if
        the recording has failed."""
        self.end()
        self._worker.close(_CLOSE_TIMEOUT_S)
        self._check()
        if not self._finished.is_set():
            raise DeviceError(
                f"recording {self.path} could not be finished within {_CLOSE_TIMEOUT_S:g} s: "
                "is its disk slow or gone?"
            )
        return self.written

    def remove_empty(self) -> bool:
        """Once it is closed: remove a file without a frame, which nothing could play. True if it
        was one."""
        if not self.written:
            self.path.unlink(missing_ok=True)
        return not self.written

    def _check(self) -> None:
        if self._error is not None:
            reason = getattr(self._error, "strerror", None) or self._error
            raise DeviceError(
                f"recording {self.path} stopped after {self.written} frames: {reason}"
            ) from self._error

    def _hand_over(self, pixels: np.ndarray, at_ns: int) -> None:
        if self._room.acquire(blocking=False):
            self._worker.submit(self._write, pixels, at_ns)
        else:
            self.dropped += 1

    # --- the recorder's thread -------------------------------------------------------------

    def _open(self, size: tuple[int, int], fps: float) -> None:
        # Loading the encoder holds the interpreter lock, which frames feel: for 9 ms at most when
        # nothing interrupts it, for 100 ms and more at a low priority.
        second_in_line()
        try:
            self._video = VideoFile(self.path, size, fps)
        except Exception as error:
            self._error = error
        finally:
            in_turn()
            self._opened.set()

    def _write(self, pixels: np.ndarray, at_ns: int) -> None:
        try:
            if self._error is None and self._video is not None:
                self._video.write(cv2.flip(pixels, 0), at_ns)  # GL counts rows upwards
                self.written += 1
        except Exception as error:
            self._error = error
            self._finish()  # gives back what it holds
        finally:
            self._room.release()

    def _finish(self) -> None:
        try:
            if self._video is not None:
                self._video.close()
        except Exception as error:
            self._error = self._error or error
        finally:
            self._finished.set()


def upright_bgr(pixels: np.ndarray) -> np.ndarray:
    """A copy of the framebuffer as OpenCV has pictures."""
    return cv2.flip(cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGR), 0)  # GL counts rows upwards


def save_picture(path: Path, rgb: np.ndarray) -> None:
    """Write an RGB picture, replacing an old one only when the new one is complete; ConfigError
    when the file type or place does not allow it."""
    try:
        encoded = cv2.imencode(path.suffix, rgb[..., ::-1])[1]  # imwrite overlooks a full disk
    except cv2.error as error:
        raise ConfigError(f"cannot write picture {path}: use a .png or .jpg name") from error
    try:
        replace_file(path, encoded.tobytes())
    except OSError as error:
        raise ConfigError(f"cannot write picture {path}: {error.strerror or error}") from error


def _check(path: Path, fps: float) -> None:
    if path.suffix.lower() != ".mp4":
        raise ConfigError(f"recording to {path}: the name must end in .mp4")
    if not fps > 0:
        raise ConfigError(f"recording at {fps} frames a second: give a number above 0")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise ConfigError(f"recording to {path}: it cannot be written ({error})") from error
