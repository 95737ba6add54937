"""The gap between two frames, and how well the GPU was used in it."""

from __future__ import annotations

_SMOOTHING = 0.1
_FOR_EVER_NS = 10**18
_WHOLE = 0.9  # a gap counts as whole while at least this part of a usual one is left


class Gap:
    """Open from FrameRendered to RenderStarted, meant to end at ``end_ns``.

    Statistics are sums since the start: ``opened_ns`` of gaps, ``runnable_ns`` of them with work
    to run, ``busy_ns`` of them with a chunk on the GPU (its measured time), ``overruns``: chunks
    that ended after their gap.
    """

    def __init__(self, interval_ns: int) -> None:
        self.is_open = self.endless = False
        self.start_ns = self.end_ns = self._at_ns = 0
        self.usual_ns = interval_ns  # until the first gap is seen
        self.chunks = 0  # started in this gap
        self.busy_at_opening = False
        self.runnable = False
        self.opened = self.opened_ns = self.runnable_ns = self.busy_ns = self.overruns = 0
        self._chunk_start_ns = 0
        self._chunk_gap = self._chunk_gap_end_ns = 0  # the gap it started in: its number, its end

    def utilization_since(self, before: Gap) -> float:
        """Chunk GPU time / gap time while work was runnable, since ``before``, an earlier moment (1
        when there was no work)."""
        runnable_ns = self.runnable_ns - before.runnable_ns
        return (self.busy_ns - before.busy_ns) / runnable_ns if runnable_ns else 1.0

    def advance(self, now_ns: int) -> None:
        """Account for the time since the last call; due before ``runnable`` changes."""
        if not self.is_open:
            return
        until_ns = now_ns if now_ns < self.end_ns else self.end_ns
        if until_ns > self._at_ns:
            passed_ns = until_ns - self._at_ns
            self.opened_ns += passed_ns
            if self.runnable:
                self.runnable_ns += passed_ns
            self._at_ns = until_ns

    def open(self, now_ns: int, end_ns: int, busy: bool) -> None:
        """A frame is on screen. ``busy``: a chunk still runs."""
        self.advance(now_ns)
        end_ns = end_ns if end_ns > now_ns else now_ns
        rate = _SMOOTHING if self.opened else 1.0
        self.usual_ns += int(rate * (end_ns - now_ns - self.usual_ns))
        self.is_open, self.end_ns = True, end_ns
        self.start_ns = self._at_ns = now_ns
        self.chunks, self.busy_at_opening = 0, busy
        self.opened += 1

    def open_endless(self, now_ns: int) -> None:
        """Nothing is drawn any more: a gap until further notice, in which chunks are as long as a
        usual one."""
        self.advance(now_ns)
        self.is_open = self.endless = True
        self.start_ns = self._at_ns = now_ns
        self.end_ns = now_ns + _FOR_EVER_NS
        self.opened += 1

    def close(self, now_ns: int) -> None:
        """Rendering takes the GPU."""
        self.advance(now_ns)
        self.is_open = self.endless = False
        self.end_ns = min(self.end_ns, now_ns)

    def next_ns(self, now_ns: int) -> int:
        """When the gap after this one begins, or would."""
        end_ns = now_ns + self.usual_ns if self.endless else self.end_ns
        return end_ns if end_ns > now_ns else now_ns

    def has_its_chunk(self, opening: bool) -> bool:
        """Where a gap takes one chunk: that is chosen when it opens (``opening``), or when the
        chunk that then still ran has ended."""
        if self.endless:
            return False
        return self.chunks > 0 or not (opening or self.busy_at_opening)

    def room(self, now_ns: int) -> tuple[int, bool]:
        """Time before rendering takes the GPU back, and whether the gap is fresh: (nearly) a
        whole one is left, with no chunk in it yet. While nothing is drawn, each chunk has as much
        as a whole gap."""
        if self.endless:
            return self.usual_ns, True
        left_ns = self.end_ns - now_ns if self.end_ns > now_ns else 0
        return left_ns, self.chunks == 0 and left_ns >= _WHOLE * self.usual_ns

    def chunk_started(self, now_ns: int, goes_on: bool = False) -> None:
        """A chunk has the GPU, or has it again (``goes_on``)."""
        self.chunks += not goes_on
        self._chunk_start_ns = now_ns
        self._chunk_gap, self._chunk_gap_end_ns = self.opened, self.end_ns

    def chunk_ended(self, elapsed_ns: int, off_ns: int = 0) -> None:
        """A chunk had the GPU for ``elapsed_ns`` from its start on, and held it for ``off_ns`` more
        in which it had nothing for it."""
        end_ns = self._chunk_start_ns + elapsed_ns + off_ns
        if self._chunk_gap == self.opened:
            gap_end_ns = self.end_ns
        else:
            gap_end_ns = self._chunk_gap_end_ns
            if end_ns > self.start_ns:  # it ran on into the present gap
                self.busy_ns += max(min(end_ns, self.end_ns) - self.start_ns - off_ns, 0)
        if end_ns <= gap_end_ns:
            self.busy_ns += elapsed_ns
        else:
            self.overruns += 1
            self.busy_ns += max(gap_end_ns - self._chunk_start_ns - off_ns, 0)
