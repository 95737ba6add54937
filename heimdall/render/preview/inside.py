"""What aiortc keeps to itself and a short way needs: the only place that looks inside it.

Each function finds what it needs or says that this aiortc has no such thing; the connection works
then, and is slower (tests/render/preview/test_inside.py).
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from aiortc import RTCRtpReceiver, RTCRtpSender
from aiortc.jitterbuffer import JitterBuffer, JitterFrame
from aiortc.rtp import AnyRtcpPacket, RtcpSrPacket, RtpPacket

log = logging.getLogger(__name__)

CAPACITY = 512  # packets, as aiortc has it: of a picture of 600 kB
MOST_WAITING = 4  # pictures that wait to be decoded; then all are left out up to a key frame
_KEPT = 256  # pictures whose arrival is remembered
_WORD = 1 << 32


class Prompt(JitterBuffer):
    """Hands a picture on with its last packet, which RTP marks; aiortc's own waits for the next
    picture's first, a whole interval.

    ``is_key(data)``: a picture needs none before it. While ``waiting`` pictures have not been
    decoded, new ones are left out (``left_out``) rather than queued, up to a key frame.
    """

    def __init__(self, is_key: Callable[[bytes], bool]) -> None:
        super().__init__(CAPACITY, is_video=True)
        self._is_key = is_key
        self._first: int | None = None  # RTP time of the first picture
        self._arrived: OrderedDict[int, int] = OrderedDict()
        self._behind = False
        self.waiting = 0
        self.left_out = self._told = 0

    def newly_left_out(self) -> int:
        """How many were left out since this was asked last."""
        told, self._told = self._told, self.left_out
        return self.left_out - told

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        """See JitterBuffer: whether a key frame is to be asked for, and a whole picture."""
        lost, frame = super().add(packet)
        if frame is None:
            return lost, None
        self._behind = (self._behind or self.waiting >= MOST_WAITING) and not (
            self.waiting < MOST_WAITING and self._is_key(frame.data)
        )
        if self._behind:
            self.left_out += 1
            return self.waiting < MOST_WAITING, None
        if self._first is None:
            self._first = frame.timestamp
        self._arrived[frame.timestamp] = time.perf_counter_ns()
        while len(self._arrived) > _KEPT:
            self._arrived.popitem(last=False)
        self.waiting += 1
        return lost, frame

    def decoded(self, pts: int | None) -> tuple[int, int]:
        """RTP time of a decoded picture, by aiortc's time of it, and when it had come whole, by
        ``time.perf_counter_ns``."""
        rtp = ((pts or 0) + (self._first or 0)) % _WORD
        now_ns = time.perf_counter_ns()
        came_ns = self._arrived.get(rtp, now_ns)
        # One that could not be decoded never comes: those before this one are not waited for.
        self.waiting = sum(each > came_ns for each in self._arrived.values())
        return rtp, came_ns

    def _remove_frame(self, sequence_number: int) -> JitterFrame | None:
        parts: list[bytes] = []
        timestamp: int | None = None
        for count in range(self._capacity):
            packet = self._packets[((self._origin or 0) + count) % self._capacity]
            if packet is None:
                return None
            if packet.timestamp != timestamp:
                if any(parts) and timestamp is not None:  # its sender marks nothing
                    self.remove(count)
                    return JitterFrame(b"".join(parts), timestamp)
                parts, timestamp = [], packet.timestamp  # nothing but padding before
            parts.append(packet._data)  # type: ignore[attr-defined]
            if packet.marker and any(parts):
                self.remove(count + 1)
                return JitterFrame(b"".join(parts), packet.timestamp)
        return None


def hurry(receiver: RTCRtpReceiver, is_key: Callable[[bytes], bool]) -> Prompt:
    """Have a receiver hand pictures on with their last packet."""
    prompt = Prompt(is_key)
    _replace(receiver, "_RTCRtpReceiver__jitter_buffer", prompt)
    return prompt


class _First(JitterBuffer):
    """As aiortc has it for sound, and remembers the RTP time with which it began."""

    def __init__(self) -> None:
        super().__init__(capacity=16, prefetch=4)
        self.first: int | None = None

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        lost, frame = super().add(packet)
        if frame is not None and self.first is None:
            self.first = frame.timestamp
        return lost, frame


def remember_first(receiver: RTCRtpReceiver) -> Callable[[], int]:
    """What gives the RTP time of the first sound of a receiver, from which aiortc counts."""
    buffer = _First()
    _replace(receiver, "_RTCRtpReceiver__jitter_buffer", buffer)
    return lambda: buffer.first or 0


def on_report(receiver: RTCRtpReceiver, hear: Callable[[float, int], object]) -> None:
    """``hear(seconds, rtp)`` whenever the sender says which time of its clock, in s since 1970, is
    which RTP time."""
    inner: Callable[[AnyRtcpPacket], Awaitable[None]] = receiver._handle_rtcp_packet

    async def handle(packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpSrPacket):
            sent = packet.sender_info
            hear(sent.ntp_timestamp / _WORD - 2_208_988_800, sent.rtp_timestamp)
        await inner(packet)

    _replace(receiver, "_handle_rtcp_packet", handle)


def on_key_wanted(sender: RTCRtpSender, hear: Callable[[], object]) -> None:
    """``hear()`` when the other end has lost a picture: aiortc passes that on to its own encoder
    alone."""
    _replace(sender, "_send_keyframe", hear)


def rtp_time(sender: RTCRtpSender) -> int | None:
    """RTP time of the last packet that was sent; None: unknown."""
    found: int | None = getattr(sender, "_RTCRtpSender__rtp_timestamp", None)
    return found


def _replace(owner: Any, name: str, by: Any) -> None:
    if hasattr(owner, name):
        setattr(owner, name, by)
    else:
        log.warning("this aiortc has no %s: what the phone sends comes later than need be", name)
