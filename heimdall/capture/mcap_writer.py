"""Writes a captured session to an MCAP file, without making callers wait.

Callers hand over what is to be kept; a thread of its own, of low priority, encodes and
writes. Half a second of work is a chunk of the file, so what is written is there whatever ends the
program: only the index at the end is missing then.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2

from heimdall.capture import mcap_messages as messages
from heimdall.errors import ConfigError, DeviceError
from heimdall.system.priority import lower_priority
from heimdall.system.workers import Workers

if TYPE_CHECKING:
    from mcap.writer import Writer

    from heimdall.capture.lens import Camera
    from heimdall.capture.source import Frame

NICE = 10  # of everything that records: below capture and the pool
CHUNK_S = 0.5  # of the session: what a cut may cost
QUALITY = 90  # of JPEG
_WAITING = 12  # pictures that wait for the encoder, 33 MB of 720p; more are left out
_CLOSE_TIMEOUT_S = 30.0
_JSON = (
    messages.RUN,
    messages.DECISIONS,
    messages.RESULTS,
    messages.INPUTS,
    messages.STATES,
    messages.MOTION,
    messages.DEVICE,
)


class McapWriter:
    """Keeps frames and notes of a session in the file ``path``; ``lossless``: pictures as PNG, else
    as JPEG. Any thread may hand things over, without waiting; order is kept.

    ``written``, ``dropped``: pictures in the file, and those left out because encoding could not
    keep up; ``error``: why it has stopped. Raises ConfigError at once where the path cannot be
    written.
    """

    def __init__(self, path: str | Path, *, lossless: bool = False) -> None:
        self.path = Path(path)
        self.written = self.dropped = 0
        self.error: str | None = None
        self._suffix = ".png" if lossless else ".jpg"
        self._settings = (
            [cv2.IMWRITE_PNG_COMPRESSION, 1] if lossless else [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
        )
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()
        self._room = threading.Semaphore(_WAITING)
        self._camera: Camera | None = None
        self._chunk_ns = 0
        self._closed = False
        try:
            self._file = self.path.open("wb")
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error
        self._writer, self._channels = self._begun()
        self._worker = Workers("session-file", urgency=lambda: lower_priority(NICE))

    def frame(self, frame: Frame) -> None:
        """Keep a frame; left out while too many wait."""
        if self.error or self._closed:
            return
        if self._room.acquire(blocking=False):
            self._worker.submit(self._guarded, self._write_frame, frame)
        else:
            self.dropped += 1

    def note(self, topic: str, at_ns: int, make: Callable[[], dict[str, Any]]) -> None:
        """Keep what ``make`` returns, JSON data, of ``at_ns`` (``time.perf_counter_ns``). It is
        called on the writer's thread."""
        if not (self.error or self._closed):
            self._worker.submit(self._guarded, self._write_note, topic, at_ns, make)

    def end(self) -> None:
        """Take nothing more; what waits, and the index, are written in the background."""
        if not self._closed:
            self._closed = True
            self._worker.submit(self._guarded, self._writer.finish)
            self._worker.submit(self._file.close)

    def close(self) -> None:
        """``end``, and wait for it; closing twice is allowed. Raises DeviceError where the file is
        not whole."""
        self.end()
        self._worker.close(_CLOSE_TIMEOUT_S)
        if not self._file.closed and self.error is None:
            self.error = f"its disk took more than {_CLOSE_TIMEOUT_S:g} s"
        if self.error is not None:
            raise DeviceError(
                f"capture {self.path} stopped after {self.written} pictures: {self.error}"
            )

    def since_1970(self, at_ns: int) -> int:
        """A time of ``time.perf_counter_ns`` as the file has it."""
        return at_ns + self._epoch_ns

    # --- the writer's thread -------------------------------------------------------------------

    def _begun(self) -> tuple[Writer, dict[str, int]]:
        from mcap.writer import CompressionType, Writer

        writer = Writer(self._file, compression=CompressionType.ZSTD)
        writer.start("", "heimdall")
        image, camera = (
            writer.register_schema(name, "protobuf", messages.schema_bytes(name))
            for name in (messages.IMAGE_SCHEMA, messages.CAMERA_SCHEMA)
        )
        channels = {
            messages.PICTURES: writer.register_channel(messages.PICTURES, "protobuf", image),
            messages.CAMERAS: writer.register_channel(messages.CAMERAS, "protobuf", camera),
        }
        for topic in _JSON:
            name = "heimdall" + topic.rpartition("/")[2].capitalize()
            schema = writer.register_schema(name, "jsonschema", messages.JSON_SCHEMA)
            channels[topic] = writer.register_channel(topic, "json", schema)
        return writer, channels

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        try:
            if self.error is None:
                work(*args)
        except Exception as error:  # a full disk, or a value that cannot be written
            self.error = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"

    def _write_frame(self, frame: Frame) -> None:
        try:
            ok, data = cv2.imencode(self._suffix, frame.image, self._settings)
        finally:
            self._room.release()
        if not ok:
            raise DeviceError(f"frame {frame.sequence} cannot be encoded")
        at_ns = self.since_1970(frame.captured_ns)
        plain = replace(frame.camera, pose=None, motion=None, device=None)
        camera, motion, device = plain, frame.camera.motion, frame.camera.device
        if camera != self._camera:
            self._camera = camera
            self._add(messages.CAMERAS, at_ns, messages.camera_message(at_ns, camera))
        if motion is not None:
            said = json.dumps(messages.motion_data(motion)).encode()
            self._add(messages.MOTION, at_ns, said)
        if device is not None:
            said = json.dumps(messages.device_data(device)).encode()
            self._add(messages.DEVICE, at_ns, said)
        form = "png" if self._suffix == ".png" else "jpeg"
        self._add(messages.PICTURES, at_ns, messages.image_message(at_ns, data.tobytes(), form))
        self.written += 1

    def _write_note(self, topic: str, at_ns: int, make: Callable[[], dict[str, Any]]) -> None:
        self._add(topic, self.since_1970(at_ns), json.dumps(make()).encode())

    def _add(self, topic: str, at_ns: int, data: bytes) -> None:
        self._writer.add_message(self._channels[topic], at_ns, data, at_ns)
        now_ns = time.perf_counter_ns()
        if now_ns - self._chunk_ns > CHUNK_S * 1e9:
            self._chunk_ns = now_ns
            self._writer._Writer__finalize_chunk()  # type: ignore[attr-defined]  # no public way
            self._file.flush()
