"""A video file that plays whatever ends its writing: an MP4 of fragments, each whole by itself.

An MP4 usually has its table of contents written when it is closed, and is nothing without it. In
a fragmented one each fragment, here a quarter of a second, brings its own; it is appended, handed
to the system at once (so it outlives this process) and to the disk every second (so it outlives
the machine's power). Nothing of the file is written twice.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np

from heimdall.errors import DeviceError
from heimdall.system.priority import lower_priority
from heimdall.system.workers import Workers

if TYPE_CHECKING:
    from av import Packet, VideoStream

NICE = 10  # of everything that records: below pool and capture
TICKS_HZ = 90_000  # time stamps count these
KEYFRAMES_S = 2.0  # where a player can jump to
_FRAGMENT_S = 0.25
_SYNC_S = 1.0
_SYNC_TIMEOUT_S = 10.0
_MP4 = {
    "movflags": "frag_keyframe+empty_moov+default_base_moof",
    "frag_duration": str(round(_FRAGMENT_S * 1e6)),
    "flush_packets": "1",
}
# The first of these that is there is taken; browsers play both. Neither holds frames back. 720p
# takes 8 ms (H.264) or 10 ms (VP9) of a core; the next better preset of x264 twice that.
CODECS = {
    "libx264": {"preset": "ultrafast", "tune": "zerolatency", "crf": "21"},
    "libvpx-vp9": {
        "deadline": "realtime",
        "cpu-used": "8",
        "lag-in-frames": "0",
        "crf": "30",
        "b:v": "0",
    },
}
_BT601, _BT709, _LIMITED = 6, 1, 1  # as FFmpeg numbers matrices, primaries and ranges
_NOT_SYNCED = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)  # a pipe or a device cannot be


class VideoFile:
    """Writes a video of ``size`` (width, height) pixels, at about ``fps``; one thread at a time.

    Replaces what is at ``path``. An odd side gets one pixel more. Encodes in the thread that
    calls, with its priority. Raises OSError where ``path`` cannot be written, DeviceError where
    PyAV has neither encoder.
    """

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        import av  # here: only recording needs it, and it takes a while

        codec = _codec()
        self._size = size
        self._frame_ticks = max(1, round(TICKS_HZ / fps))
        self._first_ns: int | None = None
        self._ticks = -1
        self._closed = False
        self._file = _DurableFile(path)
        try:
            self._container = av.open(self._file, "w", format="mp4", options=_MP4)
        except BaseException:
            self._file.close()
            raise
        try:
            rate = Fraction(fps).limit_denominator(1001)
            stream = self._container.add_stream(codec, rate=rate, options=CODECS[codec])
            assert isinstance(stream, av.VideoStream)
            self._stream = stream
            self._set_up(stream, fps)
            self._container.start_encoding()
            self._file.settle()
        except BaseException:
            self._release()
            raise

    def _set_up(self, stream: VideoStream, fps: float) -> None:
        width, height = self._size
        stream.width, stream.height = width + width % 2, height + height % 2
        stream.pix_fmt = "yuv420p"  # the one that every browser plays
        stream.time_base = stream.codec_context.time_base = Fraction(1, TICKS_HZ)
        context = stream.codec_context
        context.gop_size = max(1, round(KEYFRAMES_S * fps))
        context.thread_count = 1  # the calling one: the other cores draw and compute
        context.colorspace, context.color_range = _BT601, _LIMITED  # what OpenCV converts to
        context.color_primaries = context.color_trc = _BT709

    def write(self, picture: np.ndarray, at_ns: int) -> None:
        """Add a picture, RGBA uint8 (h, w, 4), shown from ``at_ns`` on, counted by any clock, until
        the next one. One of another size is scaled.

        Raises OSError once something could not be written; the file ends with the fragment before.
        """
        from av import VideoFrame

        frame = VideoFrame.from_ndarray(self._planes(picture), format="yuv420p")
        if self._first_ns is None:
            self._first_ns = at_ns
        ticks = round((at_ns - self._first_ns) * TICKS_HZ / 1e9)
        self._ticks = frame.pts = max(ticks, self._ticks + 1)
        frame.time_base = Fraction(1, TICKS_HZ)
        self._mux(self._stream.encode(frame))

    def close(self) -> None:
        """Finish the file. Raises OSError where not all of it has been written."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._file.broken:
                self._mux(self._stream.encode(None))
        finally:
            self._release()
        self._file.check()

    def _release(self) -> None:
        try:
            self._container.close()  # one that is forgotten open takes the process down with it
            self._file.settle()
        finally:
            self._file.close()

    def _mux(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            packet.duration = self._frame_ticks  # of the last frame of all: others have a next one
            self._container.mux(packet)
        self._file.settle()

    def _planes(self, picture: np.ndarray) -> np.ndarray:
        """The picture as planes of brightness and, half as wide and high, colour."""
        # OpenCV takes 1 ms for it, FFmpeg's scaler 9 ms.
        width, height = self._size
        if picture.shape[1::-1] != self._size:
            picture = cv2.resize(picture, self._size, interpolation=cv2.INTER_AREA)
        if width % 2 or height % 2:
            picture = cv2.copyMakeBorder(picture, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
        return cv2.cvtColor(picture, cv2.COLOR_RGBA2YUV_I420)


def _codec() -> str:
    from av.codec import codecs_available

    for name in CODECS:
        if name in codecs_available:
            return name
    raise DeviceError(
        f"PyAV has no encoder for recordings here ({' or '.join(CODECS)}); "
        "its wheels have both: `pip install --force-reinstall --no-cache-dir av`"
    )


class _DurableFile:
    """A file that is only appended to, for PyAV to write into. It reaches the disk every second.

    The first error is kept, and ends the file where it last was whole: what is written later is
    left out, so that the muxer can be closed in peace.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._error: OSError | None = None
        self._pending = bytearray()
        self._whole = 0  # bytes, all of them in whole fragments
        self._sync_due_s = time.monotonic() + _SYNC_S
        # A disk may take a second for it, and frames would be left out meanwhile.
        self._syncing = Workers("recorder-sync", urgency=lambda: lower_priority(NICE))

    @property
    def broken(self) -> bool:
        """True if something could not be written."""
        return self._error is not None

    def write(self, data: bytes) -> int:
        """Keep ``data`` until ``settle``."""
        if self._error is None:
            self._pending += data
        return len(data)

    def settle(self) -> None:
        """What has come so far is whole: write it, at once, so that being killed in between does
        not cut it. Raises OSError if that, or something before, cannot be written."""
        if self._pending and self._error is None:
            try:
                self._append(bytes(self._pending))
            except OSError as error:
                self._error = error
                with suppress(OSError):  # a device has no length
                    self._file.truncate(self._whole)
        self.check()

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        self._whole += len(data)
        self._pending.clear()
        if time.monotonic() >= self._sync_due_s:
            self._sync_due_s = time.monotonic() + _SYNC_S
            self._syncing.submit(self._sync)

    def check(self) -> None:
        """Raises the OSError of what was not written, if any."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Bring it to the disk and close it; ``check`` tells how that went."""
        if self._file.closed:
            return
        self._syncing.submit(self._sync)
        self._syncing.close(_SYNC_TIMEOUT_S)
        try:
            self._file.close()
        except OSError as error:
            self._error = self._error or error

    def _sync(self) -> None:
        sync = getattr(os, "fdatasync", os.fsync)
        try:
            sync(self._file.fileno())
        except OSError as error:
            if error.errno not in _NOT_SYNCED:
                self._error = self._error or error
