"""The line that requests stand in: so many run, the others wait by priority.

Whatever runs is the coordinator's, which knows deadlines but no priority of single requests. So
only a few are handed on, and of the others the most urgent goes next. No client can have the whole
line: where it is full, the last request of the one that has most of it gives way.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from heimdall.serve.limits import Limits
from heimdall.serve.refusals import Reason, RefusedError
from heimdall.vocabulary.enums import Priority

_GAVE_WAY = "the line is full, and this client has most of it: try again later"
_RANK = {Priority.HIGH: 0, Priority.NORMAL: 1, Priority.LOW: 2}


class Line:
    """For one event loop. ``refused`` counts requests that a full line turned away."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None], Hashable]] = []
        self._number = itertools.count()
        self.refused = 0

    def __len__(self) -> int:
        """How many requests wait or run."""
        return self._running + sum(not turn.done() for _, _, turn, _ in self._waiting)

    @property
    def running(self) -> int:
        """How many of them run."""
        return self._running

    @asynccontextmanager
    async def turn(self, priority: Priority, client: Hashable = None) -> AsyncIterator[None]:
        """The time in which a request of a client runs. Refused where too many wait already."""
        if len(self) >= self._limits.waiting and not self._make_room(client):
            self.refused += 1
            raise RefusedError(
                Reason.BUSY, f"{self._limits.waiting} requests are waiting: try again later"
            )
        if self._running < self._limits.running:
            self._running += 1
        else:
            await self._wait(priority, client)
        try:
            yield
        finally:
            self._pass_on()

    def _make_room(self, client: Hashable) -> bool:
        """Whether a client that has less of the line got a place of the one that has most."""
        waiting = [each for each in self._waiting if not each[2].done()]
        counts = Counter(each[3] for each in waiting)
        for greedy, most in counts.most_common(1):
            if most > counts[client] + 1:
                _, _, turn, _ = max(each for each in waiting if each[3] == greedy)
                turn.set_exception(RefusedError(Reason.BUSY, _GAVE_WAY))
                self.refused += 1
                return True
        return False

    async def _wait(self, priority: Priority, client: Hashable) -> None:
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (_RANK[priority], next(self._number), turn, client))
        try:
            await turn
        except asyncio.CancelledError:  # its client has gone
            if turn.done() and not turn.cancelled():
                self._pass_on()  # and its turn had come
            turn.cancel()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, turn, _ = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1
