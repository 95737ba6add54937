"""Networks and DNNs in milliseconds, as plans have them."""

from __future__ import annotations

from collections.abc import Iterable

from heimdall.schedulers import utility_for
from heimdall.vocabulary.plans import DnnPlan, StagePlan

MS = 1_000_000


def make_stage(
    ops_ms: Iterable[float],
    *,
    cpu_ms: float | None = None,
    fallback: Iterable[int] = (),
    chunk_cost_ms: float = 0.0,
    chunks: Iterable[tuple[int, int]] = (),
    tasks: int = 1,
) -> StagePlan:
    """A network of these ops; on the CPU it takes three times as long unless said otherwise."""
    op_ns = tuple(int(ms * MS) for ms in ops_ms)
    off = set(fallback)
    return StagePlan(
        op_ns=op_ns,
        fallback=tuple(i in off for i in range(len(op_ns))),
        cpu_ns=3 * sum(op_ns) if cpu_ms is None else int(cpu_ms * MS),
        chunk_cost_ns=int(chunk_cost_ms * MS),
        chunks=tuple(chunks),
        tasks=tasks,
    )


def make_plan(
    name: str,
    *stages: StagePlan,
    constraint_ms: float = 1000,
    priority: str = "normal",
    continuous: bool = True,
    min_interval_ms: float = 0,
    **utility: float,
) -> DnnPlan:
    return DnnPlan(
        name=name,
        stages=stages,
        constraint_ns=int(constraint_ms * MS),
        utility=utility_for(priority, constraint_ms, **utility),
        min_interval_ns=int(min_interval_ms * MS),
        continuous=continuous,
        priority=priority,
    )
