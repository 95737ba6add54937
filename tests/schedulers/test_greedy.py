"""What every greedy policy shares; what is specific to one is in its own test."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.greedy import Greedy


class LastNamed(Greedy):
    name = "last-named"
    reason = "last name"

    def prefer(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView:
        assert len(jobs) > 1
        return max(jobs, key=lambda job: job.dnn)


def chosen(moment, *jobs):
    choice = LastNamed().select(moment.view(*jobs), moment.now_ns)
    return choice.assignments[0].job, choice.reason


def test_the_preferred_job_runs_for_the_policys_reason(moment):
    first, last = moment.job("a"), moment.job("b")
    assert chosen(moment, last, first) == (last.id, "last name")


def test_a_job_at_risk_goes_before_the_preferred_one(moment):
    risky = moment.job("a", age_ms=50, constraint_ms=100)
    assert chosen(moment, risky, moment.job("b")) == (risky.id, "its deadline is at risk")


@pytest.mark.parametrize("returned", [None, "a", 0])
def test_a_preference_for_no_job_says_what_it_should_be(moment, returned, monkeypatch):
    monkeypatch.setattr(LastNamed, "prefer", lambda *_: returned)
    with pytest.raises(ValueError, match=f"must return one of its jobs, not {returned!r}"):
        chosen(moment, moment.job("a"), moment.job("b"))


def test_a_job_alone_runs_without_being_weighed(moment):
    job = moment.job("a", age_ms=50, constraint_ms=100)
    assert chosen(moment, job) == (job.id, "no other job fits the gap")
