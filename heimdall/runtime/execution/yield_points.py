"""A chunk in parts: it ends with its gap even where the device turns out slower, and may yield.

What a chunk will take is known to a few percent most of the time, and to a third when something
else wants the memory. So it is handed to the device a few milliseconds at a time, and no further
than the gap reaches at the pace it has this time, or until a more urgent job waits.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from heimdall.coordinator.chunking import part_ns
from heimdall.vocabulary.events import RunChunk

_LAST_NS = 1_000_000  # parts get shorter towards the end, where it is decided how far to go
_SLOWER = 1.5  # than expected: what a chunk may turn out to be at most, all but always
_TOLERANCE_NS = 800_000  # beyond the gap, of which its guard takes half: no frame is late for it


class YieldPoints:
    """Where a network may stop. ``op_ns``: the profiled times of its ops; ``chunk_cost_ns``: what a
    wait for the device costs; ``fallback``: ops that it lacks, where a part ends, too."""

    def __init__(
        self, op_ns: Sequence[int], chunk_cost_ns: int, fallback: Sequence[bool] = ()
    ) -> None:
        self._sums = list(accumulate(op_ns, initial=0))
        self._stops = [op for op in range(1, len(fallback)) if fallback[op] != fallback[op - 1]]
        self._part_ns = part_ns(chunk_cost_ns)

    def pace(self, chunk: RunChunk, clock: Callable[[], int] = time.perf_counter_ns) -> Pace:
        """The parts of a chunk that starts now: one, where it has to run to its end."""
        sums, start_op = self._sums, chunk.start_op
        work_ns = sums[chunk.end_op] - sums[start_op]
        slowness = chunk.expected_ns / work_ns if work_ns else 1.0
        ends = [chunk.end_op]
        if chunk.until_ns and not self._short(chunk, clock()):
            ends = list(self._ends(start_op, chunk.end_op, max(slowness, 0.1)))
        expected_ns = [int((sums[end] - sums[start_op]) * slowness) for end in ends]
        return Pace(ends, expected_ns, chunk.until_ns + _TOLERANCE_NS, clock)

    def _short(self, chunk: RunChunk, now_ns: int) -> bool:
        """Not worth more waits than one: it ends long before its gap does, and soon."""
        spare_ns = chunk.until_ns - now_ns - _SLOWER * chunk.expected_ns
        return chunk.expected_ns <= 2 * self._part_ns and spare_ns >= 0

    def _ends(self, start: int, end: int, slowness: float) -> Iterator[int]:
        """Parts of a third of what is left, within limits. Before fallback ops there is a wait
        anyway, so what is short enough before one is a part."""
        sums, last_ns, longest_ns = self._sums, _LAST_NS / slowness, self._part_ns / slowness
        while start < end:
            stop = next((op for op in self._stops if start < op < end), end)
            length_ns = min(max((sums[end] - sums[start]) / 3, last_ns), longest_ns)
            if stop < end and sums[stop] - sums[start] <= 2 * longest_ns:
                length_ns = 2 * longest_ns
            start = bisect_left(sums, sums[start] + length_ns, start + 1, stop)
            yield start


class Pace:
    """How a chunk gets on, from now: ``ends[i]`` is where its part i ends, ``expected_ns[i]``
    how long it takes to get there."""

    def __init__(
        self,
        ends: Sequence[int],
        expected_ns: Sequence[int],
        until_ns: int,
        clock: Callable[[], int],
    ) -> None:
        self.ends, self._expected_ns = ends, expected_ns
        self._until_ns, self._clock = until_ns, clock
        self._began_ns = clock()

    def go_on(self, part: int, ended: int) -> bool:
        """True if ``part`` would end in time too, now that so many parts have ``ended``."""
        slowness = (self._clock() - self._began_ns) / max(self._expected_ns[ended - 1], 1)
        return self._began_ns + slowness * self._expected_ns[part] <= self._until_ns
