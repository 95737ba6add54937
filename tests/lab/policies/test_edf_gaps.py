from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heimdall.lab.policies.edf_gaps import EarliestDeadlineInGaps

POLICY = EarliestDeadlineInGaps()


def chosen(moment, *jobs):
    choice = POLICY.select(moment.view(*jobs), moment.now_ns)
    ids = {job.id: job.dnn for job in jobs}
    return ids[choice.assignments[0].job], choice.reason


def test_the_earliest_deadline_runs(moment):
    late = moment.job("late", age_ms=700, constraint_ms=2000)
    soon = moment.job("soon", age_ms=10, constraint_ms=500)
    assert chosen(moment, late, soon) == ("soon", "earliest deadline")


def test_a_priority_comes_before_any_deadline(moment):
    best_effort = moment.job("best effort", constraint_ms=500, priority="low")
    asked = moment.job("asked", constraint_ms=5000, priority="high")
    assert chosen(moment, best_effort, asked)[0] == "asked"


def test_it_does_not_wait_for_a_later_ones_chunk(moment):
    soon, late = moment.job("soon", constraint_ms=500), moment.job("late", constraint_ms=900)
    assert POLICY.preempts(soon, late)
    assert not POLICY.preempts(late, soon)
    high = moment.job("high", constraint_ms=5000, priority="high")
    assert POLICY.preempts(high, soon)
    assert not POLICY.preempts(soon, high)


def test_best_effort_interrupts_nothing(moment):
    first, second = (
        moment.job(name, constraint_ms=ms, priority="low") for name, ms in (("a", 500), ("b", 900))
    )
    assert not POLICY.preempts(first, second)


@given(st.lists(st.sampled_from(("low", "normal", "high")), min_size=3, max_size=3))
def test_no_two_jobs_interrupt_each_other(moment, priorities):
    jobs = [moment.job(str(i), constraint_ms=500, priority=p) for i, p in enumerate(priorities)]
    for one in jobs:
        for other in jobs:
            assert not (POLICY.preempts(one, other) and POLICY.preempts(other, one))
