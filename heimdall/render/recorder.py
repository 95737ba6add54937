"""Records what was drawn, without making the frames wait.

The main thread asks the GPU to copy a frame into a pixel buffer and takes the copy of two
frames ago, which is ready; a thread of its own, below the others in priority, encodes.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from pathlib import Path

import cv2
import moderngl
import numpy as np

from heimdall.errors import ConfigError, DeviceError
from heimdall.render.surface import Surface
from heimdall.system.priority import lower_priority

_IN_FLIGHT = 2  # frames between asking for a copy and taking it
_QUEUE = 48  # frames that wait for the encoder; then the main thread waits: none is dropped
_NICE = 10


class Copies:
    """Copies of the framebuffer on their way from the GPU; nobody waits for them. Main thread."""

    def __init__(self) -> None:
        self._buffers: list[moderngl.Buffer] = []
        self._pending: deque[tuple[moderngl.Buffer, tuple[int, int]]] = deque()

    def ask(self, surface: Surface) -> None:
        """Start copying what the surface shows. Best called after ``finish``; waits for it else."""
        # llvmpipe waits for the frame inside the copy, holding the interpreter lock: wait first.
        surface.wait()
        w, h = surface.size
        buffer = self._buffer(surface.ctx, w * h * 4)
        surface.framebuffer.read_into(buffer, components=4)
        self._pending.append((buffer, (w, h)))

    def take(self, leave: int = 0) -> np.ndarray | None:
        """The oldest copy, RGBA uint8 (h, w, 4), bottom row first; None while at most ``leave``
        are under way."""
        if len(self._pending) <= leave:
            return None
        buffer, (w, h) = self._pending.popleft()
        pixels = np.empty((h, w, 4), np.uint8)
        buffer.read_into(pixels)
        self._buffers.append(buffer)
        return pixels

    def release(self) -> None:
        """Free the GPU's memory."""
        for buffer in (*self._buffers, *(buffer for buffer, _ in self._pending)):
            buffer.release()
        self._buffers, self._pending = [], deque()

    def _buffer(self, ctx: moderngl.Context, size: int) -> moderngl.Buffer:
        for position, buffer in enumerate(self._buffers):
            if buffer.size == size:
                return self._buffers.pop(position)
        return ctx.buffer(reserve=size)


class Recorder:
    """Writes an MP4 of ``size`` at a constant ``fps``: one frame a call of ``add``.

    Raises ConfigError where the path cannot be written, DeviceError where OpenCV cannot encode
    MPEG-4; both at once, not at the end. A frame of another size (a resized window) is scaled.
    """

    def __init__(self, path: str | Path, size: tuple[int, int], fps: float):
        self.path, self._size = Path(path), size
        self._writer = _open_writer(self.path, size, fps)
        self._copies = Copies()
        self._frames: queue.Queue[np.ndarray | None] = queue.Queue(_QUEUE)
        self._error: BaseException | None = None
        self._written = 0
        self._ended = False
        self._thread = threading.Thread(target=self._encode, name="recorder", daemon=True)
        self._thread.start()

    def add(self, surface: Surface) -> None:
        """Record the surface's framebuffer. Best called after ``finish``; waits for it else."""
        if self._ended:
            raise ConfigError(f"recording {self.path} is closed: no frame can be added")
        self._copies.ask(surface)
        pixels = self._copies.take(leave=_IN_FLIGHT)
        if pixels is not None:
            self._frames.put(pixels)

    def end(self) -> None:
        """No more frames: what is under way is written in the background. Call it while the
        surface is open."""
        if self._ended:
            return
        self._ended = True
        while (pixels := self._copies.take()) is not None:
            self._frames.put(pixels)
        self._frames.put(None)
        self._copies.release()

    def close(self) -> int:
        """``end``, and wait for it; returns how many frames the file has. Raises DeviceError if
        encoding failed."""
        self.end()
        self._thread.join()
        if self._error is not None:
            raise DeviceError(f"recording {self.path} failed: {self._error}") from self._error
        return self._written

    def _encode(self) -> None:
        lower_priority(_NICE)
        while (pixels := self._frames.get()) is not None:
            if self._error is not None:
                continue  # keep emptying the queue, so that the main thread never waits for it
            try:
                self._write(pixels)
            except Exception as error:
                self._error = error
        self._writer.release()

    def _write(self, pixels: np.ndarray) -> None:
        picture = upright_bgr(pixels)
        if picture.shape[1::-1] != self._size:
            picture = cv2.resize(picture, self._size, interpolation=cv2.INTER_AREA)
        self._writer.write(picture)
        self._written += 1


def upright_bgr(pixels: np.ndarray) -> np.ndarray:
    """A copy of the framebuffer as OpenCV has pictures."""
    return cv2.flip(cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGR), 0)  # GL counts rows upwards


def save_picture(path: Path, rgb: np.ndarray) -> None:
    """Write an RGB picture; ConfigError when the file type or place does not allow it."""
    try:
        written = cv2.imwrite(str(path), rgb[..., ::-1])
    except cv2.error:
        written = False
    if not written:
        raise ConfigError(f"cannot write picture {path}: use a .png or .jpg in an existing folder")


def _open_writer(path: Path, size: tuple[int, int], fps: float) -> cv2.VideoWriter:
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
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), fps, size)
    if not writer.isOpened():
        raise DeviceError(f"recording to {path}: OpenCV has no MPEG-4 encoder here")
    return writer
