"""When frames start, how long before one its gap closes, and how long drawing usually takes."""

from __future__ import annotations

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


class Reserve:
    """How long before a frame its gap closes, so that the GPU works no more than ``limit`` of the
    time: a real-time GPU that does is stopped by the system for 50 ms.

    Whatever the GPU idles anyway counts, and up to MOST_NS of it is kept for later. So gaps close
    early only while the GPU hardly ever waits for work.
    """

    MOST_NS = 3_000_000

    def __init__(self, limit: float, interval_ns: int, least_ns: int = GAP_GUARD_NS) -> None:
        self._limit, self._least_ns = limit, least_ns
        self._needed_ns = round((1.0 - limit) * interval_ns)
        self._kept_ns = self._worked_ns = 0
        self._since_ns: int | None = None

    def worked(self, elapsed_ns: int) -> None:
        """The GPU has worked that long."""
        self._worked_ns += elapsed_ns

    def guard_ns(self, now_ns: int) -> int:
        """How long before its end the gap that opens now shall close. Once a frame."""
        if self._since_ns is not None:
            allowed_ns = round(self._limit * (now_ns - self._since_ns))
            kept_ns = self._kept_ns + allowed_ns - self._worked_ns
            self._kept_ns = max(-self.MOST_NS, min(kept_ns, self.MOST_NS))
        self._since_ns, self._worked_ns = now_ns, 0
        return max(self._least_ns, self._needed_ns - self._kept_ns)


class Usual:
    """How long something takes all but ``rare`` of the time, lately.

    Robbins and Monro's estimate of a quantile: a step up whenever it took longer, small steps
    down else. So one outlier hardly counts, and what follows the estimate moves smoothly.
    """

    STEP_NS = 800_000

    def __init__(self, first_ns: int, rare: float = 0.01) -> None:
        self.ns = first_ns
        self._up_ns = round(self.STEP_NS * (1 - rare))
        self._down_ns = round(self.STEP_NS * rare)

    def observe(self, took_ns: int) -> None:
        """It has taken ``took_ns`` this time."""
        self.ns += self._up_ns if took_ns > self.ns else -self._down_ns
