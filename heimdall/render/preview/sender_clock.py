"""When what a phone sends was captured.

Pictures and sound carry RTP's time, the page's words its own: the sender's reports say which moment
of the phone's clock is which RTP time, and the page says how far its clock is from ours.
"""

from __future__ import annotations

from aiortc import RTCRtpReceiver

from heimdall.render.preview import inside

_WORD = 1 << 32
_OLDEST_S = 2.0  # of what comes: else a clock is wrong


class SenderClock:
    """Of one receiver, whose RTP time has so many ``ticks`` a second. Event loop only."""

    def __init__(self, receiver: RTCRtpReceiver, ticks: int) -> None:
        self._ticks = ticks
        self._report: tuple[float, int] | None = None
        self._ahead_s: float | None = None  # the phone's clock, of ours
        inside.on_report(receiver, self._reported)

    def compare(self, ahead_ms: float) -> None:
        """The phone's clock, in ms since 1970, is that far ahead of ours."""
        self._ahead_s = ahead_ms / 1000

    def captured_ns(self, rtp: int, came_ns: int) -> int:
        """When that was, by ``time.perf_counter_ns``; when it came, where the phone's clock is not
        known yet."""
        if self._report is None or self._ahead_s is None:
            return came_ns
        seconds, then = self._report
        since = (rtp - then + _WORD // 2) % _WORD - _WORD // 2
        captured_ns = round((seconds + since / self._ticks - self._ahead_s) * 1e9)
        return captured_ns if 0 <= came_ns - captured_ns < _OLDEST_S * 1e9 else came_ns

    def _reported(self, seconds: float, rtp: int) -> None:
        self._report = seconds, rtp
