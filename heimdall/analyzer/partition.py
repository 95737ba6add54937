"""Partitioners: where to cut a network into chunks before it runs (the static mode).

A partitioner sees what the profile knows of the ops and returns half-open ranges that cover
all of them in order. A run of fallback ops is a range of its own: it ends a GPU chunk, and
the pool runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from heimdall.errors import ConfigError, unknown

MARGIN_NS = 5_000_000  # relaxation of Eq. 1: the paper's 5 ms
FIXED_OPS = 5  # ops a chunk in MACE, the paper's comparison in section 8


@dataclass(frozen=True)
class OpCosts:
    """What a partitioner may know of a network.

    ``op_ns`` is each op's latency, ``fallback`` marks those that run on the CPU, and
    ``chunk_cost_ns`` is the measured cost of one more cut.
    """

    op_ns: tuple[int, ...]
    fallback: tuple[bool, ...]
    chunk_cost_ns: int = 0


@dataclass(frozen=True)
class Chunk:
    """Ops ``[start, end)`` and their expected latency; ``fallback`` ones run in the pool."""

    start: int
    end: int
    ns: int
    fallback: bool = False


Partitioner = Callable[..., list[tuple[int, int]]]
_STRATEGIES: dict[str, Partitioner] = {}


def partition(
    costs: OpCosts,
    gap_ns: int,
    strategy: str = "heimdall",
    *,
    margin_ns: int = MARGIN_NS,
    ops_per_chunk: int = FIXED_OPS,
) -> list[Chunk]:
    """Cut a network by a named strategy: ``heimdall``, ``fixed`` or ``whole``.

    ``gap_ns`` is 1/f - T_render (Eq. 1). Raises ConfigError for an unknown strategy, a gap
    that is not positive, a negative margin or an empty chunk.
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
    chunks = []
    for start, end, fallback in _runs(costs.fallback):
        inner = [(start, end)] if fallback else _STRATEGIES[strategy](costs, start, end, **options)
        for first, last in inner:
            ns = sum(costs.op_ns[first:last]) + (0 if fallback else costs.chunk_cost_ns)
            chunks.append(Chunk(first, last, ns, fallback))
    return chunks


def strategies() -> tuple[str, ...]:
    """The names of all partitioners."""
    return tuple(sorted(_STRATEGIES))


def register(name: str) -> Callable[[Partitioner], Partitioner]:
    """Register a partitioner: ``f(costs, start, end, **options)`` cuts the GPU ops
    ``[start, end)`` into ranges."""

    def keep(function: Partitioner) -> Partitioner:
        _STRATEGIES[name] = function
        return function

    return keep


@register("heimdall")
def _fewest_chunks(
    costs: OpCosts, start: int, end: int, *, gap_ns: int, margin_ns: int, **_: int
) -> list[tuple[int, int]]:
    """Section 5.3: pack ops until the gap (relaxed by the margin) is full.

    T(i, j) is a difference of prefix sums plus the cost of a chunk. As T only grows with j,
    packing greedily gives the fewest chunks. An op above the limit is a chunk by itself.
    """
    limit_ns = gap_ns + margin_ns - costs.chunk_cost_ns
    prefix = [0, *accumulate(costs.op_ns[start:end])]
    chunks = []
    first = 0
    for op in range(1, end - start):
        if prefix[op + 1] - prefix[first] > limit_ns:
            chunks.append((start + first, start + op))
            first = op
    return [*chunks, (start + first, end)]


@register("fixed")
def _fixed_size(
    costs: OpCosts, start: int, end: int, *, ops_per_chunk: int, **_: int
) -> list[tuple[int, int]]:
    """A fixed number of ops a chunk, whatever they cost (MACE; section 8)."""
    return [(op, min(op + ops_per_chunk, end)) for op in range(start, end, ops_per_chunk)]


@register("whole")
def _whole(costs: OpCosts, start: int, end: int, **_: int) -> list[tuple[int, int]]:
    """No cut at all: what frameworks without a partitioner do."""
    return [(start, end)]


def _runs(fallback: Sequence[bool]) -> list[tuple[int, int, bool]]:
    """Maximal runs of GPU ops and of fallback ops, as (start, end, fallback)."""
    runs = []
    start = 0
    for kind, group in groupby(fallback):
        end = start + len(list(group))
        runs.append((start, end, kind))
        start = end
    return runs
