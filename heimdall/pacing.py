"""Frame deadlines: absolute times on a grid, kept by a sleep that ends in a short spin.

``time.sleep`` alone was up to 6 ms off beside busy threads; sleeping to a fraction of a
millisecond before the deadline and yielding until it kept starts 33.33 ms apart at p99.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SPIN_NS = 300_000  # the last stretch, spent yielding: the interpreter lock is free meanwhile


# The gap closes a little before rendering starts: waking the GPU worker, and what its
# expected latency is off by, must fit in between.
GAP_GUARD_NS = 400_000


class Pacer:
    """Start times of frames, ``interval_ns`` apart.

    A frame that comes too late moves the grid on by whole intervals: missed frames are
    skipped, never caught up in a burst.
    """

    def __init__(self, interval_ns: int, start_ns: int) -> None:
        self.interval_ns = interval_ns
        self.next_ns = start_ns

    def advance(self, now_ns: int) -> int:
        """Move to the next start still ahead of ``now_ns``; return how many were skipped."""
        self.next_ns += self.interval_ns
        behind = now_ns - self.next_ns
        if behind <= 0:
            return 0
        skipped = -(-behind // self.interval_ns)
        self.next_ns += skipped * self.interval_ns
        return skipped


def spin_until(deadline_ns: int, clock: Callable[[], int] = time.perf_counter_ns) -> None:
    """Yield until ``deadline_ns``; sleeping zero gives the interpreter lock away each turn."""
    while clock() < deadline_ns:
        time.sleep(0)
