"""Virtual time: what is going to happen, earliest first."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Agenda(Generic[Item]):
    """Items by their time in ns; of two at the same time, the one that was added first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Item]] = []
        self._count = 0

    def add(self, at_ns: int, item: Item) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at_ns, self._count, item))

    def next_ns(self) -> int | None:
        """When the next item is due; None when there is none."""
        return self._heap[0][0] if self._heap else None

    def pop(self) -> tuple[int, Item]:
        """Take the next item: (its time, itself)."""
        at_ns, _, item = heapq.heappop(self._heap)
        return at_ns, item
