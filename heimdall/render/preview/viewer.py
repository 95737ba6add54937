"""One viewer: which pictures it gets, and when it has had enough time for them.

All of it runs in the event loop of the server's thread.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable

from heimdall.render.preview import protocol, replies
from heimdall.render.preview.hands import Hands
from heimdall.render.preview.jpegs import Picture

# One picture is under way at a time: the next one is the newest then. A page that is far away would
# get few that way, and gets two; not one that is slow, or behind a slow line: those would only see
# each picture later.
FAR_S = 0.2
# A page that confirms within this has the next picture made meanwhile, or a confirmation just after
# a frame would halve its rate. For a slower one a picture is made once it can be sent: few in all.
QUICK_S = 0.1
STALLED_S = 5.0  # a page that shows nothing for so long is not there any more
MOST_MESSAGES = 1000  # a second


class StalledError(Exception):
    """The page takes no more pictures."""


class Viewer:
    """Gives pictures to one page at its own pace: the newest whenever it can take one.

    ``send(data)`` returns when the network has taken the data; ``changed()`` is called when
    ``wants`` may have changed.
    """

    def __init__(
        self,
        send: Callable[[bytes], Awaitable[object]],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.hands = Hands()
        self._send, self._tell, self._clock = send, changed, clock
        self._newest: Picture | None = None
        self._under_way: deque[tuple[int, float, float]] = deque()  # number, drawn, sent (s)
        self._at_once = 1
        self._round_trip_s = math.inf
        self._sent = 0
        self._watching = True
        self.refused = False  # it has said what no page says
        self.by_video = False  # its pictures come another way
        self._latency_s: float | None = None
        self._event = asyncio.Event()
        self._window_s, self._messages = clock(), 0

    @property
    def wants(self) -> bool:
        """Whether a picture drawn now would be sent, at once or soon."""
        if not self._watching or self.by_video:
            return False
        return self._may_send or self._round_trip_s < QUICK_S

    @property
    def _may_send(self) -> bool:
        return len(self._under_way) < self._at_once

    def offer(self, picture: Picture) -> None:
        """Send this one, if it is wanted, unless a newer one comes before it can be sent."""
        if self.wants:
            self._newest = picture
            self._wake()

    def shown(self, number: int, took_s: float) -> None:
        """The page has drawn this picture, ``took_s`` after it came. Raises MessageError for one
        that it never got."""
        if number > self._sent:
            raise protocol.MessageError("shown: no picture of this number was sent")
        while self._under_way and self._under_way[0][0] <= number:
            _, drawn_s, sent_s = self._under_way.popleft()
            now_s = self._clock()
            self._latency_s = now_s - drawn_s
            self._round_trip_s = now_s - sent_s
            self._at_once = 2 if took_s < self._round_trip_s - took_s < FAR_S else 1
        self._wake()

    def watch(self, on: bool) -> None:
        """Tells whether the page is visible; pictures wait until it is."""
        self._watching = on
        self._newest = None
        self._under_way.clear()  # a hidden page need not draw them
        self._wake()

    def count_message(self) -> None:
        """Raises MessageError when there are too many of them."""
        now_s = self._clock()
        if now_s - self._window_s >= 1.0:
            self._window_s, self._messages = now_s, 0
        self._messages += 1
        if self._messages > MOST_MESSAGES:
            raise protocol.MessageError(f"more than {MOST_MESSAGES} messages a second")

    async def feed(self) -> None:
        """Send pictures until cancelled. Raises StalledError when they are not taken."""
        while True:
            await self._until(lambda: self._newest is not None)
            picture, self._newest = self._newest, None
            if picture is None:
                continue
            self._sent += 1
            self._under_way.append((self._sent, picture.drawn.at_ns / 1e9, self._clock()))
            self._tell()
            data = replies.picture(self._sent, self._latency_s, picture.jpeg)
            try:
                await asyncio.wait_for(self._send(data), STALLED_S)
                await asyncio.wait_for(self._until(lambda: self._may_send), STALLED_S)
            except TimeoutError:
                raise StalledError from None
            self._tell()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._event.clear()
            await self._event.wait()

    def _wake(self) -> None:
        self._event.set()
        self._tell()
