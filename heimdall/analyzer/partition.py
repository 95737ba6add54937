"""Partitioners: where to cut a network into chunks before it runs (the static mode).

A partitioner sees what is known of a network (``StagePlan``) and returns half-open ranges that
cover all of its ops in order. The paper's partitions *all* ops (Eq. 1), so that fallback ops lie
inside chunks; ``runs``, ``fixed`` and ``whole`` make a run of fallback ops a range of its own, as a
policy that enqueues ops on a device has to. ``even`` is SPLIT's, ``critical`` Pantheon's: both
partition all ops, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from heimdall.analyzer.even import Ops, best_split
from heimdall.analyzer.units import units
from heimdall.errors import ConfigError, unknown
from heimdall.vocabulary.enums import ChunkMode
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU
from heimdall.vocabulary.ranges import runs

MARGIN_NS = 5_000_000  # relaxation of Eq. 1: the paper's 5 ms
_LIGHT = 0.25  # of the mean chunk: a chunk that takes less is "lightweight" (Pantheon, 3.2.1)
FIXED_OPS = 5  # ops a chunk in MACE, the paper's comparison in section 8


@dataclass(frozen=True)
class Chunk:
    """Ops ``[start, end)`` and their expected latency; ``fallback_ops`` of them run in the pool."""

    start: int
    end: int
    ns: int
    fallback_ops: int = 0

    @property
    def fallback(self) -> bool:
        """True if no op of the chunk runs on the GPU."""
        return self.fallback_ops == self.end - self.start


@dataclass(frozen=True)
class Cut:
    """How networks are cut for a gap of ``gap_ns``. A gap that is not positive (rendering alone is
    too slow for the frame rate) makes every op a chunk."""

    gap_ns: int
    strategy: str = "heimdall"
    margin_ns: int = MARGIN_NS

    def apply(self, plan: StagePlan) -> StagePlan:
        """The plan of a network, cut so; ``chunks`` holds the ranges of fallback ops too."""
        gap_ns, margin_ns = (self.gap_ns, self.margin_ns) if self.gap_ns > 0 else (1, 0)
        chunks = partition(plan, gap_ns, self.strategy, margin_ns=margin_ns)
        return replace(plan, chunks=tuple((chunk.start, chunk.end) for chunk in chunks))


def strategy_of(mode: str) -> str:
    """The partition that a chunk mode goes by."""
    return "runs" if mode == ChunkMode.STATIC_RUNS else "heimdall"


def partition(
    plan: StagePlan,
    gap_ns: int,
    strategy: str = "heimdall",
    *,
    margin_ns: int = MARGIN_NS,
    ops_per_chunk: int = FIXED_OPS,
) -> list[Chunk]:
    """Cut a network by a named strategy: ``critical``, ``even``, ``heimdall``, ``runs``, ``fixed``,
    ``units`` or ``whole``.

    ``gap_ns`` is 1/f - T_render (Eq. 1); for ``even``, how long a short network takes. Raises
    ConfigError for an unknown strategy, a gap that is not positive, a negative margin or an empty
    chunk.
    """
    if strategy not in _STRATEGIES:
        raise ConfigError(unknown("partition strategy", strategy, _STRATEGIES))
    if gap_ns <= 0:
        raise ConfigError(
            f"the gap between two frames is {gap_ns / 1e6:.1f} ms: rendering leaves no time for "
            "networks; lower the frame rate or the size"
        )
    if margin_ns < 0 or ops_per_chunk < 1:
        raise ConfigError("the margin must not be negative, and a chunk has at least one op")
    options = {"gap_ns": gap_ns, "margin_ns": margin_ns, "ops_per_chunk": ops_per_chunk}
    return [
        Chunk(start, end, _expected_ns(plan, start, end), sum(plan.fallback[start:end]))
        for start, end in _STRATEGIES[strategy](plan, **options)
    ]


def strategies() -> tuple[str, ...]:
    """The names of all partitioners."""
    return tuple(sorted(_STRATEGIES))


def _fewest_chunks(
    plan: StagePlan, *, gap_ns: int, margin_ns: int, **_: int
) -> list[tuple[int, int]]:
    """Section 5.3: pack ops, those that fall back too, until the gap (relaxed by the margin) is
    full. As T only grows with every op, packing greedily gives the fewest chunks."""
    return _packed(plan, 0, len(plan.op_ns), gap_ns + margin_ns)


def _fewest_in_each_run(
    plan: StagePlan, *, gap_ns: int, margin_ns: int, **_: int
) -> list[tuple[int, int]]:
    """The fewest chunks for each run of GPU ops by itself: a fallback op ends a chunk."""
    return _in_runs(plan, lambda start, end: _packed(plan, start, end, gap_ns + margin_ns))


def _fixed_size(plan: StagePlan, *, ops_per_chunk: int, **_: int) -> list[tuple[int, int]]:
    """A fixed number of ops a chunk, whatever they cost (MACE; section 8)."""

    def cut(start: int, end: int) -> list[tuple[int, int]]:
        return [(op, min(op + ops_per_chunk, end)) for op in range(start, end, ops_per_chunk)]

    return _in_runs(plan, cut)


def _units(plan: StagePlan, **_: int) -> list[tuple[int, int]]:
    """Where another set of processors supports the ops (Band, section 4.2)."""
    on_gpu = tuple(None if off else ns for ns, off in zip(plan.op_ns, plan.fallback, strict=True))
    return units(plan.on or ((GPU, on_gpu),))


def _whole(plan: StagePlan, **_: int) -> list[tuple[int, int]]:
    """No cut but at fallback ops: what frameworks without a partitioner do."""
    return _in_runs(plan, lambda start, end: [(start, end)])


def _evenly(plan: StagePlan, *, gap_ns: int, **_: int) -> list[tuple[int, int]]:
    """SPLIT's blocks (see ``even``), fallback ops among them. Only long networks are split (section
    5.4): one that takes ``gap_ns`` or less is a block by itself."""
    ops = Ops(plan.op_ns, plan.cut_ns, plan.chunk_cost_ns)
    cuts = best_split(ops).cuts if ops.whole_ns > gap_ns else ()
    return list(pairwise((0, *cuts, ops.count)))


def _at_critical_nodes(plan: StagePlan, **_: int) -> list[tuple[int, int]]:
    """Between critical nodes, where one tensor is alive (where that is not known: anywhere), light
    chunks merged into the heavy one before them (Pantheon, section 3.2.1). There, layers are heavy
    or light by their kind, as frameworks fuse them; here by their time, for fusing is done."""
    ops = len(plan.op_ns)
    places = [op for op in plan.critical or range(ops) if 0 < op < ops]
    slices = list(pairwise((0, *places, ops)))
    on_gpu = [0 if off else ns for ns, off in zip(plan.op_ns, plan.fallback, strict=True)]
    least_ns = _LIGHT * sum(on_gpu) / len(slices)
    heavy = [start for start, end in slices if sum(on_gpu[start:end]) >= least_ns > 0]
    return list(pairwise((0, *(start for start in heavy if start), ops)))


def _packed(plan: StagePlan, start: int, end: int, limit_ns: int) -> list[tuple[int, int]]:
    """As many ops a chunk as take ``limit_ns``; an op above that is a chunk by itself."""
    chunks = []
    first, taken_ns = start, 0
    for op in range(start, end):
        more_ns = _more_ns(plan, first, op)
        if op > first and taken_ns + more_ns > limit_ns:
            chunks.append((first, op))
            first, taken_ns = op, 0
            more_ns = _more_ns(plan, first, op)
        taken_ns += more_ns
    return [*chunks, (first, end)]


def _more_ns(plan: StagePlan, first: int, op: int) -> int:
    """What ``op`` adds to the chunk that began at ``first``. Each run of GPU ops in a chunk has to
    be waited for (Algorithm 1), which plan as much as a chunk of its own."""
    begins_run = not plan.fallback[op] and (op == first or plan.fallback[op - 1])
    cut_ns = plan.cut_ns[op] if op == first and op and plan.cut_ns else 0
    return plan.op_ns[op] + cut_ns + (plan.chunk_cost_ns if begins_run else 0)


def _expected_ns(plan: StagePlan, start: int, end: int) -> int:
    """T(i, j) of Eq. 1, with the cost of waiting."""
    return sum(_more_ns(plan, start, op) for op in range(start, end))


def _in_runs(
    plan: StagePlan, cut: Callable[[int, int], list[tuple[int, int]]]
) -> list[tuple[int, int]]:
    """``cut`` for each maximal run of GPU ops; each of fallback ops is one range."""
    ranges = []
    for start, end, fallback in runs(plan.fallback):
        ranges += [(start, end)] if fallback else cut(start, end)
    return ranges


# f(plan, **options): half-open ranges that cover all ops in order
_STRATEGIES: dict[str, Callable[..., list[tuple[int, int]]]] = {
    "critical": _at_critical_nodes,
    "even": _evenly,
    "fixed": _fixed_size,
    "heimdall": _fewest_chunks,
    "runs": _fewest_in_each_run,
    "units": _units,
    "whole": _whole,
}
