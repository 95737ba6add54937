from __future__ import annotations

import pytest

from heimdall.schedulers import create
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.plans import StagePlan
from tests.views import Still

MS = 1_000_000


def costs(op_ms: list[float], fallback: tuple[int, ...] = ()) -> StageCosts:
    return StageCosts(
        StagePlan(
            op_ns=tuple(int(ms * MS) for ms in op_ms),
            fallback=tuple(i in fallback for i in range(len(op_ms))),
            cpu_ns=100 * MS,
            chunk_cost_ns=0,
            chunks=(),
        )
    )


@pytest.fixture(params=["max-total", "max-min"])
def scheduler(request):
    return create(request.param)


def view_with_one_away(moment, *, away_ms: float, op_ms: float, urgent: bool = True):
    """``ready`` could run ops 2-7 while ``style`` is at a fallback op of ``away_ms``."""
    ready = moment.job("ready", age_ms=10)._replace(costs=(costs([op_ms] * 7),))
    style = moment.job("style", age_ms=60, constraint_ms=100 if urgent else 5000, remaining_ms=9)
    style = style._replace(
        costs=(costs([1, 1, away_ms, 1], fallback=(2,)),),
        back_ns=moment.now_ns + int(away_ms * MS),
        enqueued_ns=style.enqueued_ns if urgent else ready.enqueued_ns + 5 * MS,
    )
    return moment.view(ready)._replace(lookup=Still({}, off=(style,)))


def test_what_runs_while_an_urgent_job_is_on_the_cpu_ends_when_that_returns(moment, scheduler):
    choice = scheduler.select(view_with_one_away(moment, away_ms=5, op_ms=2), moment.now_ns)
    assert [each.end_op for each in choice.assignments] == [4]
    assert "style" in choice.reason


def test_the_gpu_waits_for_an_urgent_job_when_no_op_fits_its_absence(moment, scheduler):
    assert scheduler.select(view_with_one_away(moment, away_ms=1, op_ms=2), moment.now_ns) is None


def test_time_that_an_urgent_job_has_been_away_for_is_not_counted_again(moment, scheduler):
    view = view_with_one_away(moment, away_ms=5, op_ms=2)
    choice = scheduler.select(view, moment.now_ns + 3 * MS)
    assert [each.end_op for each in choice.assignments] == [3]


def test_the_longer_an_urgent_job_is_overdue_the_longer_others_may_run(moment, scheduler):
    view = view_with_one_away(moment, away_ms=1, op_ms=2)
    assert scheduler.select(view, moment.now_ns + 2 * MS) is None
    choice = scheduler.select(view, moment.now_ns + 6 * MS)
    assert [each.end_op for each in choice.assignments] == [4]


def test_a_job_that_is_not_urgent_is_not_waited_for(moment, scheduler):
    view = view_with_one_away(moment, away_ms=1, op_ms=2, urgent=False)
    if scheduler.name == "max-min":  # it would be the worst off: give it more utility
        view.lookup.off = (view.away[0]._replace(bonus=1e9),)
    choice = scheduler.select(view, moment.now_ns)
    assert [each.end_op for each in choice.assignments] == [7]
