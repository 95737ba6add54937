"""When what a phone sends was captured, by its sender's reports and what its page says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiortc.rtp import RtcpSenderInfo, RtcpSrPacket

from heimdall.render.preview.sender_clock import SenderClock

SINCE_1900 = 2_208_988_800
AHEAD_S = 1_700_000_000.0  # of the phone's clock
RATE = 48_000


class Receiver:
    def __init__(self):
        self.heard: list[Any] = []

    async def _handle_rtcp_packet(self, packet):
        self.heard.append(packet)


@pytest.fixture
def receiver():
    return Receiver()


@pytest.fixture
def clock(receiver):
    made = SenderClock(receiver, RATE)
    made.compare(1000 * AHEAD_S)
    return made


def report(receiver, own_s: float, rtp: int) -> None:
    """The phone says what RTP time it was when our clock showed that."""
    ntp = round((AHEAD_S + own_s + SINCE_1900) * 2**32)
    info = RtcpSenderInfo(ntp_timestamp=ntp, rtp_timestamp=rtp, packet_count=0, octet_count=0)
    asyncio.run(receiver._handle_rtcp_packet(RtcpSrPacket(ssrc=1, sender_info=info)))


def test_without_a_report_it_is_when_it_came(receiver, clock):
    assert clock.captured_ns(123, 50_000_000_000) == 50_000_000_000


@pytest.mark.parametrize("rtp", [1000, 2**32 - 100])
def test_it_follows_from_the_last_report_across_the_end_of_the_word(receiver, clock, rtp):
    report(receiver, 100.0, rtp)
    assert len(receiver.heard) == 1  # aiortc hears of it, too
    found = clock.captured_ns(rtp + RATE // 2, 101_000_000_000)
    assert found == pytest.approx(100_500_000_000, abs=10_000)
    assert clock.captured_ns(rtp - RATE // 2, 100_000_000_000) == pytest.approx(
        99_500_000_000, abs=10_000
    )


@pytest.mark.parametrize("apart_s", [-0.1, 2.5])
def test_a_time_that_cannot_be_is_not_believed(receiver, clock, apart_s):
    """From the future, or too old."""
    report(receiver, 100.0, 0)
    came_ns = round(1e9 * (100.0 + apart_s))
    assert clock.captured_ns(0, came_ns) == came_ns


def test_a_clock_that_drifts_is_followed(receiver, clock):
    """50 ppm for two hours: 360 ms. What was compared as the page began is wrong by then."""
    drift = 50e-6
    for second in range(0, 7200, 60):
        clock.compare(1000 * (AHEAD_S + drift * second))
        report(receiver, second * (1 + drift), rtp=RATE * second % 2**32)
        came_ns = round(1e9 * (second + 0.05))
        assert clock.captured_ns(RATE * second % 2**32, came_ns) == pytest.approx(
            1e9 * second, abs=1e6
        )
