"""Frames as a video that is watched while it is made: no frame waits for a later one."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import cv2
import numpy as np

from heimdall.render.encoder import Drawn

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext

H264, VP8 = "H264", "VP8"
CODECS = (H264, VP8)  # the better first: x264 takes half as long as libvpx (docs/laboratory/phone)
TICKS = 90_000  # a second, of RTP's clock for video (RFC 6184 and 7741)
BITS_A_PIXEL = 0.15  # of a frame; 4 Mbit/s at 720p and 30 fps
LEAST_RATE, MOST_RATE = 300_000, 8_000_000  # bits a second
FPS = 30
_WORSE, _BETTER = 0.7, 1.05  # of the bits, where a line loses some, and where it does not
_LOST = 0.02  # packets of a hundred: less is of no account
_LEAST_SHARE = 0.1
_SECONDS_AHEAD = 0.15  # of the bit rate that one frame may take: what a key frame needs at most
_GREY = 128  # chroma of no colour
_LUMA = np.rint(16 + np.arange(256) * 219 / 255).astype(np.uint8)  # BT.601's range
_LONG = 1_000_000  # frames until a key frame comes unasked
_OPTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    H264: (
        "libx264",
        {
            **{"preset": "ultrafast", "tune": "zerolatency", "profile": "baseline"},
            # Else browsers take pictures of 720 lines and more for BT.709.
            "x264-params": "colormatrix=smpte170m:colorprim=smpte170m:transfer=smpte170m",
        },
    ),
    VP8: (
        "libvpx",
        {
            **{"deadline": "realtime", "cpu-used": "-16", "lag-in-frames": "0"},
            "static-thresh": "1",
        },
    ),
}


@dataclass(frozen=True)
class Encoded:
    """A frame of a video. ``data``: of H.264 with start codes; ``ticks``: its time by RTP's
    clock; ``key``: it needs no frame before it; ``size``: of the frame."""

    data: bytes
    ticks: int
    key: bool
    size: tuple[int, int]
    drawn: Drawn
    encoded_ns: int


def allowed(share: float, lost: float) -> float:
    """The share of the bits that a line can take which had ``share``, and has ``lost`` that share
    of its packets in the last second: fewer bits, or more again."""
    return min(max(share * (_WORSE if lost > _LOST else _BETTER), _LEAST_SHARE), 1.0)


class Video:
    """Encodes frames in order, by one of CODECS; one of another size begins a new video.
    ``opacity``: below each frame stands its alpha, as grey. ``want_key`` is for any thread, and
    ``share`` may be set by any: of the bits that pictures of this size should have."""

    def __init__(self, codec: str, opacity: bool = False) -> None:
        self.codec, self._opacity = codec, opacity
        self.share = 1.0
        self._context: VideoCodecContext | None = None
        self._key = threading.Event()
        self._upright = self._planes = self._both = np.empty(
            (0, 0), np.uint8
        )  # kept: new memory costs time
        self._ticks = -1

    def want_key(self) -> None:
        """The next frame is to need none before it: somebody joins, or has lost one."""
        self._key.set()

    def __call__(self, pixels: np.ndarray, drawn: Drawn) -> Encoded:
        """RGBA uint8 (h, w, 4), bottom row first; odd last rows and columns are left out."""
        import av

        h, w = (side - side % 2 for side in pixels.shape[:2])
        context, tall = self._context, 2 * h if self._opacity else h
        if context is None or (context.width, context.height) != (w, tall):
            context = self._context = self._open(w, tall)
        rate = self._rate(w, tall)
        if abs(rate - (context.bit_rate or 0)) > rate / 10:
            context.bit_rate = rate  # x264 follows; libvpx does with the next size
        frame = av.VideoFrame.from_ndarray(self._yuv(pixels[:h, :w]), format="yuv420p")
        # Later than the last in any case, as an encoder asks.
        self._ticks = max(drawn.at_ns * TICKS // 1_000_000_000, self._ticks + 1)
        frame.pts, frame.time_base = self._ticks, Fraction(1, TICKS)
        if key := self._key.is_set():
            self._key.clear()
            frame.pict_type = av.video.frame.PictureType.I
        packets = context.encode(frame)
        data = b"".join(bytes(packet) for packet in packets)
        key = any(packet.is_keyframe for packet in packets)
        return Encoded(data, self._ticks, key, (w, h), drawn, time.perf_counter_ns())

    def _rate(self, w: int, h: int) -> int:
        return round(min(max(BITS_A_PIXEL * w * h * FPS * self.share, LEAST_RATE), MOST_RATE))

    def _open(self, w: int, h: int) -> VideoCodecContext:
        import av

        name, options = _OPTIONS[self.codec]
        context = av.CodecContext.create(name, "w")
        assert isinstance(context, av.VideoCodecContext)
        rate = self._rate(w, h)
        context.width, context.height, context.pix_fmt = w, h, "yuv420p"
        context.time_base, context.framerate = Fraction(1, TICKS), Fraction(FPS)
        context.bit_rate, context.gop_size, context.thread_count = rate, _LONG, 1
        limits = {"maxrate": str(rate), "bufsize": str(round(rate * _SECONDS_AHEAD))}
        context.options = {
            **options,
            **limits,
            **({"forced-idr": "1"} if name == "libx264" else {}),
        }
        return context

    def _yuv(self, pixels: np.ndarray) -> np.ndarray:
        """As planes, top row first: (3 h / 2, w); with opacity (3 h, w)."""
        h, w = pixels.shape[:2]
        if self._planes.shape != (h * 3 // 2, w):
            self._upright = np.empty((h, w, 4), np.uint8)
            self._planes = np.empty((h * 3 // 2, w), np.uint8)
            self._both = np.full((3 * h, w), _GREY, np.uint8)
        cv2.flip(pixels, 0, dst=self._upright)  # GL counts rows upwards
        planes = cv2.cvtColor(self._upright, cv2.COLOR_RGBA2YUV_I420, dst=self._planes)
        return self._over_opacity(planes) if self._opacity else planes

    def _over_opacity(self, planes: np.ndarray) -> np.ndarray:
        """The planes of a picture twice as high: the alpha, in the range of a luma, is below."""
        h, w = self._upright.shape[:2]
        both, quarter = self._both, h * w // 4
        both[:h] = planes[:h]
        cv2.LUT(cv2.extractChannel(self._upright, 3), _LUMA, dst=both[h : 2 * h])
        for number in range(2):  # the colours of what is below stay grey
            at = (2 * number + 8) * quarter
            one = planes.reshape(-1)[(4 + number) * quarter :][:quarter]
            both.reshape(-1)[at : at + quarter] = one
        return both
