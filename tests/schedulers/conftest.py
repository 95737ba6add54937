"""Views with literal times, for testing policies without a coordinator."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from heimdall.schedulers import JobView, View, utility_for
from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.utility import content_terms
from heimdall.vocabulary.plans import StagePlan, Utility
from heimdall.vocabulary.processors import GPU
from tests.views import Still, still_view

MS = 1_000_000
NOW_MS = 5_000


def make_job(
    name: str,
    *,
    age_ms: float = 0,
    constraint_ms: float = 1000,
    remaining_ms: float = 5,
    gaps: int = 1,
    other_ms: float = 0,
    priority: str = "normal",
    content: str = "paper",
    difference: float = 0,
    **utility: float,
) -> JobView:
    """A job enqueued ``age_ms`` ago."""
    made = utility_for(priority, constraint_ms, **utility)
    beta, bonus = content_terms(content, made, difference)
    enqueued_ns = int((NOW_MS - age_ms) * MS)
    return JobView(
        id=sum(map(ord, name)),
        dnn=name,
        priority=priority,
        utility=made,
        constraint_ns=int(constraint_ms * MS),
        costs=(),
        arrival_ns=enqueued_ns,
        enqueued_ns=enqueued_ns,
        deadline_ns=enqueued_ns + int(constraint_ms * MS),
        next_op=2,
        remaining_ns=int(remaining_ms * MS),
        other_ns=int(other_ms * MS),
        gaps=gaps,
        beta=beta,
        bonus=bonus,
    )


def make_view(*jobs: JobView, left_ms: float = 27, interval_ms: float = 33) -> View:
    """A gap with ``left_ms`` left, in which ops up to the seventh fit."""
    still = Still({GPU: NOW_MS * MS})
    interval_ns, end_ns = int(interval_ms * MS), int((NOW_MS + left_ms) * MS)
    return View(jobs, (GPU,), interval_ns, end_ns, "gap opened", True, {}, still)


@pytest.fixture(scope="session")
def moment() -> SimpleNamespace:
    return SimpleNamespace(job=make_job, view=make_view, now_ns=NOW_MS * MS, ms=MS)


def make_costs(
    units: dict[str, tuple[int | None, ...]], cut_ns: tuple[int, ...] = (), chunk_cost_ns: int = 0
) -> StageCosts:
    """A network of one op a unit; ``units``: by processor, what each takes there."""
    ops = len(next(iter(units.values())))
    chunks = tuple((op, op + 1) for op in range(ops))
    plan = StagePlan(
        (1,) * ops, (False,) * ops, 0, chunk_cost_ns, chunks, on=tuple(units.items()), cut_ns=cut_ns
    )
    return StageCosts(plan)


def make_request(
    id: int,
    costs: StageCosts,
    slo_ns: int = 1000,
    *,
    dnn: str = "",
    next_op: int = 0,
    at_ns: int = 0,
) -> JobView:
    """A request that came at ``at_ns``; each of a model of its own unless ``dnn`` says which."""
    return JobView(
        id=id,
        dnn=dnn or f"net{id}",
        priority="normal",
        utility=Utility(),
        constraint_ns=slo_ns,
        costs=(costs,),
        arrival_ns=at_ns,
        enqueued_ns=at_ns,
        deadline_ns=at_ns + slo_ns,
        next_op=next_op,
        request=id,
    )


def make_queue_view(
    *jobs: JobView,
    idle: tuple[str, ...] = ("cpu", "npu"),
    free_ns: dict[str, int] | None = None,
) -> View:
    """These jobs wait, and these lanes are idle."""
    free_ns = free_ns or dict.fromkeys(idle, 0)
    return still_view(jobs, idle, free_ns)


@pytest.fixture(scope="session")
def queues() -> SimpleNamespace:
    return SimpleNamespace(costs=make_costs, request=make_request, view=make_queue_view)
