"""How far a job runs once it has the GPU: to the end of a chunk of a static partition (the paper's,
or one that ends at fallback ops), or an elastic one's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.enums import ChunkMode

# A chunk may end early, so it is handed to the device in parts, each of them long beside what one
# more wait for the device costs: that is 0.05 ms here, 0.4 ms on the paper's phones.
_PART_IN_WAITS = 8
_SHORTEST_PART_NS, _LONGEST_PART_NS = 1_500_000, 3_000_000


def part_ns(chunk_cost_ns: int) -> int:
    """How long the parts of a chunk are at most, where a wait costs ``chunk_cost_ns``."""
    return min(max(_PART_IN_WAITS * chunk_cost_ns, _SHORTEST_PART_NS), _LONGEST_PART_NS)


class Chunking(ABC):
    """Decides whether a gap takes one chunk or several, and where a chunk ends."""

    one_a_gap = False
    ends_early = False  # where a chunk ends is settled while it runs
    cuts_anywhere = True  # a policy may end a chunk at any op
    holds_fallback = False  # a chunk goes on when its fallback ops have run

    def __init__(self, margin_ns: int) -> None:
        self.margin_ns = margin_ns

    @property
    def late_ns(self) -> int:
        """A gap that opens late by no more counts as whole."""
        return 0

    @abstractmethod
    def end_op(
        self, costs: StageCosts, next_op: int, left_ns: int, usual_ns: int, fresh: bool
    ) -> int:
        """Where the chunk from ``next_op`` ends; ``next_op`` when nothing should start.

        ``left_ns`` is the time before rendering takes the GPU back, ``usual_ns`` a usual gap,
        ``fresh`` whether this gap is still whole.
        """

    @abstractmethod
    def gaps(self, chunks_left: int, left_ns: int, gap_ns: int) -> int:
        """How many gaps work of ``left_ns`` needs, or ``chunks_left`` static chunks; at least 1.
        What runs off the GPU is among the work."""

    @abstractmethod
    def lone_ns(self, gaps: int, work_ns: int, gap_ns: int, interval_ns: int) -> int:
        """Latency of that work when nothing but rendering competes for the GPU."""


class Elastic(Chunking):
    """The longest run of ops that fits the time left; several chunks of several DNNs a gap.

    Where the device turns out slower than expected, the chunk ends at an earlier op.

    An op longer than a usual gap would never fit. It runs alone at the start of a gap, the whole
    of which it gets, and makes that frame late: better once than never (counted as an overrun).
    """

    ends_early = True

    def end_op(
        self, costs: StageCosts, next_op: int, left_ns: int, usual_ns: int, fresh: bool
    ) -> int:
        end = costs.longest(next_op, left_ns + self.margin_ns)
        if end == next_op:
            longest_ns = usual_ns + self.margin_ns
            oversized = fresh and costs.gpu_ns(next_op, next_op + 1) > longest_ns
            return next_op + 1 if oversized else next_op
        if end < costs.run_end[next_op] and not fresh:
            # The tail of a gap is worth a chunk only if more of it is work than cutting.
            whole_ns = costs.gpu_ns(next_op, end)
            if whole_ns < 2 * costs.chunk_cost_ns * costs.gpu_ratio.value:
                return next_op
        return end

    def gaps(self, chunks_left: int, left_ns: int, gap_ns: int) -> int:
        return -(-left_ns // (gap_ns or 1)) if left_ns > gap_ns else 1

    def lone_ns(self, gaps: int, work_ns: int, gap_ns: int, interval_ns: int) -> int:
        return work_ns + gaps * max(interval_ns - gap_ns, 0)


class StaticRuns(Chunking):
    """The chunks of a partition that ends them at fallback ops, exactly one a gap, chosen when the
    gap opens: so a fallback op ends its gap, too. An ablation of ``Static``.

    A chunk may exceed the gap by the relaxation margin, as the partition allows. When a chunk of
    the gap before still ran at the opening, its end is when this gap's chunk is chosen, and that
    chunk must fit what is left plus the margin.
    """

    one_a_gap = True

    def end_op(
        self, costs: StageCosts, next_op: int, left_ns: int, usual_ns: int, fresh: bool
    ) -> int:
        end = costs.run_end[next_op]
        chunk_end = costs.chunk_end[next_op]
        fits = fresh or costs.whole_ns(next_op, chunk_end) <= left_ns + self.margin_ns
        return min(end, chunk_end) if fits else next_op

    def gaps(self, chunks_left: int, left_ns: int, gap_ns: int) -> int:
        return max(1, chunks_left)

    def lone_ns(self, gaps: int, work_ns: int, gap_ns: int, interval_ns: int) -> int:
        return gaps * interval_ns


class Static(StaticRuns):
    """Sections 5.3 and 8: the partition of all ops, of which ``RunPartial(start, end)`` runs one
    chunk a gap, with the fallback ops in it.

    A chunk that is under way goes on as soon as its fallback ops have run, without a decision. The
    GPU is others' meanwhile (section 7.2), for chunks that fit what is left of the gap.

    A chunk that takes the margin makes the next gap open late by that. It takes a chunk all the
    same, or every other gap would be lost; one later than that takes only a chunk that fits.
    """

    cuts_anywhere = False
    holds_fallback = True

    @property
    def late_ns(self) -> int:
        return max(self.margin_ns, 0)


CHUNKINGS: Mapping[str, type[Chunking]] = {
    ChunkMode.ELASTIC: Elastic,
    ChunkMode.STATIC: Static,
    ChunkMode.STATIC_RUNS: StaticRuns,
}
DEFAULT_MARGIN_NS: Mapping[str, int] = {
    ChunkMode.ELASTIC: 0,
    ChunkMode.STATIC: 5_000_000,  # section 5.3
    ChunkMode.STATIC_RUNS: 5_000_000,
}
