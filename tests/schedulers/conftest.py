"""Views with literal times, for testing policies without a coordinator."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from heimdall.schedulers import JobView, View, utility_for
from heimdall.schedulers.utility import content_terms
from heimdall.vocabulary.processors import GPU

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
        enqueued=True,
        enqueued_ns=enqueued_ns,
        deadline_ns=enqueued_ns + int(constraint_ms * MS),
        next_op=2,
        end_op=7,
        remaining_ns=int(remaining_ms * MS),
        other_ns=int(other_ms * MS),
        gaps=gaps,
        beta=beta,
        bonus=bonus,
    )


def make_view(*jobs: JobView, left_ms: float = 27, interval_ms: float = 33) -> View:
    """A gap with ``left_ms`` left."""
    return View(
        processor=GPU,
        trigger="gap opened",
        jobs=jobs,
        in_flight=jobs,
        away=(),
        gap_end_ns=int((NOW_MS + left_ms) * MS),
        interval_ns=int(interval_ms * MS),
    )


@pytest.fixture(scope="session")
def moment() -> SimpleNamespace:
    return SimpleNamespace(job=make_job, view=make_view, now_ns=NOW_MS * MS, ms=MS)
