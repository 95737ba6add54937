from __future__ import annotations

import pytest

from heimdall.schedulers.max_total import MaxTotal


def chosen(moment, *jobs):
    choice = MaxTotal().select(moment.view(*jobs), moment.now_ns)
    ids = {job.id: job.dnn for job in jobs}
    return ids[choice.assignments[0].job], choice.reason


def literal(moment, jobs):
    """Section 6.4 as written: for each candidate, the sum in which all others are delayed."""
    view = moment.view(*jobs)
    later_ns = moment.now_ns + view.interval_ns
    sums = {
        one.dnn: one.utility_at(moment.now_ns)
        + sum(other.utility_at(later_ns) for other in jobs if other is not one)
        for one in jobs
    }
    return max(sums, key=lambda name: sums[name])


def test_a_high_priority_goes_before_an_older_job(moment):
    # loss by waiting: beta^2 * (2 * age * 33 + 33^2): 64 * 2409 > 33_000
    high = moment.job("high", age_ms=10, constraint_ms=200, priority="high")
    assert chosen(moment, moment.job("old", age_ms=480), high) == ("high", "largest total utility")


def test_among_equals_the_oldest_goes_first(moment):
    assert chosen(moment, moment.job("a", age_ms=10), moment.job("b", age_ms=20))[0] == "b"


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_sum_of_section_6_4(moment, seed):
    ages = [(seed * 37 + i * 61) % 400 for i in range(5)]
    priorities = ["low", "normal", "high"]
    jobs = [
        moment.job(f"dnn{i}", age_ms=age, priority=priorities[(seed + i) % 3])
        for i, age in enumerate(ages)
    ]
    assert chosen(moment, *jobs)[0] == literal(moment, jobs)


@pytest.mark.parametrize("difference", [0, 1e6, 1e9])
def test_content_variation_has_no_influence_literally(moment, difference):
    """alpha * C is a constant of each sum, so it cancels whatever the scene does."""
    changed = moment.job("changed", age_ms=50, difference=difference)
    other = moment.job("other", age_ms=60)
    assert chosen(moment, changed, other)[0] == "other"


def test_content_variation_counts_when_aging(moment):
    changed = moment.job("changed", age_ms=50, content="aging", difference=1e8)
    assert chosen(moment, changed, moment.job("other", age_ms=60, content="aging"))[0] == "changed"


def test_the_deadline_check_comes_first(moment):
    low = moment.job("low", age_ms=960, priority="low")
    high = moment.job("high", age_ms=20, constraint_ms=500, priority="high")
    assert chosen(moment, low, high) == ("low", "its deadline is at risk")
