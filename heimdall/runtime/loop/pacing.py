"""When frames start, how long before one its gap closes, and how long drawing usually takes."""

from __future__ import annotations

from collections import deque

import numpy as np

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
        """Learn from the ``took_ns`` that it has taken this time."""
        self.ns += self._up_ns if took_ns > self.ns else -self._down_ns


class Lead:
    """How long before it is needed a piece of work begins: what it takes and ``spare_ns``, followed
    up quickly and down slowly."""

    def __init__(self, first_ns: int, spare_ns: int) -> None:
        self.ns, self._spare_ns = first_ns, spare_ns

    def observe(self, took_ns: int) -> None:
        """Learn from the ``took_ns`` that it has taken this time."""
        needed_ns = took_ns + self._spare_ns
        self.ns += (needed_ns - self.ns) // (2 if needed_ns > self.ns else 20)


class Follower:
    """Where the grid of frames should move to, so that pictures have just come when one is taken.

    A camera and a grid of its rate keep the phase that chance gave them: pictures wait half an
    interval on average before they are taken. So frames start earlier or later, a little each,
    until pictures wait least: ``spare_ns`` where they come evenly, more where that lets more of
    them come in time. That holds where the two rates differ slightly (29.97 and 30). To start later
    costs frames a second, so there is less of it; a source of another rate is not followed.
    """

    KEPT = 60  # pictures: 2 s of most cameras
    LEAST = 15
    SPARE_NS = 1_000_000
    MOST_SPARE_NS = 10_000_000
    EARLIER, LATER = 1 / 64, 1 / 400  # of an interval a frame

    def __init__(self) -> None:
        self.spare_ns = self.SPARE_NS
        self._seen: deque[tuple[int, int, int]] = deque(maxlen=self.KEPT)

    def arrived(self, number: int, captured_ns: int, at_ns: int) -> None:
        """Picture ``number``, captured then, could be taken from ``at_ns`` on. Some may never be
        told of."""
        if not self._seen or number > self._seen[-1][0]:
            self._seen.append((number, captured_ns, at_ns))

    def shift_ns(self, take_ns: int, interval_ns: int) -> int:
        """By how much frames, one of which took its picture at ``take_ns``, should start later."""
        if len(self._seen) < self.LEAST:
            return 0
        numbers, captured, times = np.array(self._seen, np.int64).T
        # Of when they were captured, for how long each took to arrive varies more; a median, for a
        # source that has stood still for a moment must not count as a slower one.
        apart = self.LEAST - 1
        every_ns = float(
            np.median((captured[apart:] - captured[:-apart]) / (numbers[apart:] - numbers[:-apart]))
        )
        each = max(1, round(every_ns / interval_ns))  # a picture for so many frames
        several = max(1, round(interval_ns / every_ns))  # or so many in one
        ratio = every_ns * several / (interval_ns * each)
        if not 1 - self.EARLIER < ratio < 1 + self.LATER:
            return 0
        period_ns = interval_ns / several
        newest = times + (numbers[-1] - numbers) * every_ns
        waits = take_ns - newest
        spare_ns = min(max(self.spare_ns, self.SPARE_NS), self.MOST_SPARE_NS)
        later = (spare_ns - waits) % period_ns  # each would make one picture come just in time
        shift = float(later[((waits[:, None] + later) % period_ns).mean(axis=0).argmin()])
        if shift * self.EARLIER > (period_ns - shift) * self.LATER:  # nearer the other way round
            shift -= period_ns
        return round(min(max(shift, -self.EARLIER * interval_ns), self.LATER * interval_ns))
