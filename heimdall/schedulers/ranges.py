"""Expected times of op ranges on processors that a plan lists beside one GPU and CPU cores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

_EWMA = 0.1  # Band, section 4.3.2


class Ranges:
    """One network on one processor: prefix sums, where it lacks ops, and one ratio of actual to
    profiled time. ``cut_ns[i]``: what it costs to begin at op i, where that is not the first."""

    cuts = True  # whether it runs parts of the network, too
    __slots__ = ("_chunk_cost_ns", "_cut_ns", "_sums", "_supported_to", "ratio")

    def __init__(
        self, op_ns: Sequence[int | None], cut_ns: Sequence[int], chunk_cost_ns: int
    ) -> None:
        self._sums = list(accumulate((ns or 0 for ns in op_ns), initial=0))
        self._supported_to = _supported_to(op_ns)
        self._cut_ns, self._chunk_cost_ns = cut_ns, chunk_cost_ns
        self.ratio = 1.0

    def ns(self, start: int, end: int) -> int | None:
        """Ops ``[start, end)`` here, expected; None where one of them is not supported."""
        profiled_ns = self.profiled_ns(start, end)
        return None if profiled_ns is None else int(profiled_ns * self.ratio)

    def profiled_ns(self, start: int, end: int) -> int | None:
        """``ns``, as profiled."""
        if end > self._supported_to[start]:
            return None
        work_ns = self._sums[end] - self._sums[start] + self._chunk_cost_ns
        if start and self._cut_ns:
            work_ns += self._cut_ns[start]
        return work_ns

    def supported_to(self, start: int) -> int:
        """The first op from ``start`` on that is not supported."""
        return self._supported_to[start]

    def learn(self, start: int, end: int, elapsed_ns: int) -> None:
        """A range took ``elapsed_ns``."""
        profiled_ns = self.profiled_ns(start, end)
        if profiled_ns and elapsed_ns >= 0:
            self.ratio += _EWMA * (elapsed_ns / profiled_ns - self.ratio)


class Whole(Ranges):
    """A processor that runs the network only as a whole."""

    cuts = False
    __slots__ = ()

    def __init__(self, ops: int, whole_ns: int) -> None:
        super().__init__((whole_ns, *[0] * (ops - 1)), (), 0)
        self._supported_to = [ops, *[0] * (ops - 1)]

    def profiled_ns(self, start: int, end: int) -> int | None:
        whole = end - start == len(self._supported_to)
        return super().profiled_ns(start, end) if whole else None


def _supported_to(op_ns: Sequence[int | None]) -> list[int]:
    """For each op: where the supported ops from it on end (itself, if it is not)."""
    ends = [0] * len(op_ns)
    end = len(op_ns)
    for op in range(len(op_ns) - 1, -1, -1):
        end = op if op_ns[op] is None else end
        ends[op] = end
    return ends


def lone_ns(ranges: Sequence[Ranges], ends: Sequence[int], ops: int) -> int | None:
    """The network alone, on the fastest processor that supports all of it; where none does, the
    shortest way through its chunks, which end at ``ends``. None where there is no way."""
    whole = [ns for each in ranges if (ns := each.profiled_ns(0, ops)) is not None]
    if whole:
        return min(whole)
    best: dict[int, int] = {0: 0}
    for end in sorted({*ends, ops}):
        found = [
            so_far_ns + ns
            for start, so_far_ns in best.items()
            for each in ranges
            if (ns := each.profiled_ns(start, end)) is not None
        ]
        if found:
            best[end] = min(found)
    return best.get(ops)
