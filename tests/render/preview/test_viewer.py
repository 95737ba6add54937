"""The pace of one viewer, on a clock of the test's own."""

from __future__ import annotations

import asyncio

import pytest

from heimdall.render.encoder import Drawn
from heimdall.render.preview import viewer as module
from heimdall.render.preview.jpegs import Picture
from heimdall.render.preview.protocol import MessageError
from heimdall.render.preview.viewer import MOST_MESSAGES, StalledError, Viewer


class Feed:
    """A viewer being fed; ``sent`` are the pictures that left."""

    def __init__(self, hold: asyncio.Event | None = None) -> None:
        self.sent: list[bytes] = []
        self.now_s = 100.0
        self.hold = hold
        self.viewer = Viewer(self._send, lambda: None, lambda: self.now_s)
        self.task = asyncio.ensure_future(self.viewer.feed())

    async def _send(self, data: bytes) -> None:
        if self.hold:
            await self.hold.wait()
        self.sent.append(data[6:])

    async def offer(self, *names: bytes) -> None:
        for name in names:
            self.viewer.offer(Picture(name, (4, 3), Drawn(round(self.now_s * 1e9))))
            await asyncio.sleep(0.001)

    async def shown(self, number: int, took_s: float = 0.0) -> None:
        self.viewer.shown(number, took_s)
        await asyncio.sleep(0.001)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def feeding(test):
    """Runs ``test(feed)`` in a loop."""

    async def body():
        feed = Feed()
        await test(feed)
        await feed.end()

    asyncio.run(body())


def test_the_next_picture_waits_for_the_last_to_be_shown():
    async def test(feed):
        await feed.offer(b"1", b"2", b"3")
        assert feed.sent == [b"1"]
        assert not feed.viewer.wants
        await feed.shown(1)
        assert feed.viewer.wants
        await feed.offer(b"4")
        assert feed.sent == [b"1", b"4"]  # the newest then, none of those in between

    feeding(test)


def test_a_quick_page_has_the_newest_made_while_it_shows_one():
    async def test(feed):
        await feed.offer(b"1")
        await feed.shown(1)
        await feed.offer(b"2", b"3", b"4")
        assert feed.sent == [b"1", b"2"]
        await feed.shown(2)
        assert feed.sent == [b"1", b"2", b"4"]

    feeding(test)


def test_a_page_that_is_far_away_has_two_under_way():
    async def test(feed):
        await feed.offer(b"1")
        feed.now_s += 0.08
        await feed.shown(1, took_s=0.01)
        await feed.offer(b"2", b"3", b"4")
        assert feed.sent == [b"1", b"2", b"3"]

    feeding(test)


@pytest.mark.parametrize(("round_trip_s", "took_s"), [(0.08, 0.06), (1.0, 0.01)])
def test_a_page_that_is_slow_or_behind_a_slow_line_has_one(round_trip_s, took_s):
    async def test(feed):
        await feed.offer(b"1")
        feed.now_s += round_trip_s
        await feed.shown(1, took_s)
        await feed.offer(b"2", b"3")
        assert feed.sent == [b"1", b"2"]

    feeding(test)


def test_without_viewers_nothing_is_sent():
    async def test(feed):
        await feed.offer(b"1")
        feed.viewer.watch(False)
        await feed.offer(b"2")
        assert not feed.viewer.wants
        feed.viewer.watch(True)
        await feed.offer(b"3")
        assert feed.sent == [b"1", b"3"]

    feeding(test)


def test_a_page_that_shows_nothing_more_has_stalled(monkeypatch):
    monkeypatch.setattr(module, "STALLED_S", 0.01)

    async def test(feed):
        await feed.offer(b"1")
        with pytest.raises(StalledError):
            await asyncio.wait_for(feed.task, 10)

    feeding(test)


def test_a_network_that_takes_nothing_more_has_stalled(monkeypatch):
    monkeypatch.setattr(module, "STALLED_S", 0.01)

    async def body():
        feed = Feed(hold=asyncio.Event())
        await feed.offer(b"1")
        with pytest.raises(StalledError):
            await asyncio.wait_for(feed.task, 10)

    asyncio.run(body())


def test_a_receipt_for_what_was_never_sent_is_refused():
    async def test(feed):
        await feed.offer(b"1")
        with pytest.raises(MessageError):
            feed.viewer.shown(2, 0)

    feeding(test)


def test_too_many_messages_are_refused_and_a_second_later_counted_anew():
    async def test(feed):
        for _ in range(MOST_MESSAGES):
            feed.viewer.count_message()
        with pytest.raises(MessageError, match="messages a second"):
            feed.viewer.count_message()
        feed.now_s += 1.5
        feed.viewer.count_message()

    feeding(test)
