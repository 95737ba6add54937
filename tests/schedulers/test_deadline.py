from __future__ import annotations

from heimdall.schedulers.deadline import at_risk, earliest_end_ns


def risky(moment, *jobs, **view):
    job = at_risk(moment.view(*jobs, **view), moment.now_ns, jobs)
    return job.dnn if job else None


def test_a_job_that_can_wait_one_interval_is_not_at_risk(moment):
    # the gap ends in 27 ms; one gap later is 27 + 33 = 60 ms away
    assert risky(moment, moment.job("a", age_ms=39, constraint_ms=100)) is None
    assert risky(moment, moment.job("a", age_ms=41, constraint_ms=100)) == "a"


def test_time_left_counts_gaps_times_the_interval_not_gpu_time(moment):
    # 60 ms of GPU time need three gaps: the last of them ends 27 + 99 = 126 ms from now
    job = {"remaining_ms": 60, "gaps": 3, "constraint_ms": 500}
    assert risky(moment, moment.job("a", age_ms=500 - 127, **job)) is None
    assert risky(moment, moment.job("a", age_ms=500 - 125, **job)) == "a"


def test_a_job_that_needs_another_gap_is_at_risk_sooner(moment):
    assert risky(moment, moment.job("a", age_ms=30, constraint_ms=100)) is None
    assert risky(moment, moment.job("a", age_ms=30, constraint_ms=100, gaps=2)) == "a"


def test_the_earliest_deadline_goes_first(moment):
    early = moment.job("early", age_ms=950)
    late = moment.job("late", age_ms=945)
    assert risky(moment, late, early) == "early"


def test_only_jobs_at_risk_compete(moment):
    long = moment.job("long", constraint_ms=400, remaining_ms=300, gaps=12)
    soon = moment.job("soon", age_ms=100, constraint_ms=300)
    assert risky(moment, soon, long) == "long"  # its deadline is later, its work longer


def test_a_missed_job_comes_after_one_that_can_still_make_it(moment):
    missed = moment.job("missed", age_ms=1200)
    able = moment.job("able", age_ms=950)
    assert risky(moment, missed, able) == "able"
    assert risky(moment, missed) == "missed"


def test_a_hopeless_job_counts_as_missed_before_its_deadline(moment):
    hopeless = moment.job("hopeless", age_ms=900, remaining_ms=200, gaps=8)
    able = moment.job("able", age_ms=880, remaining_ms=60, gaps=3)
    assert risky(moment, hopeless, able) == "able"


def test_a_job_late_by_its_constraint_again_is_not_held_back_any_more(moment):
    able = moment.job("able", age_ms=950)
    assert risky(moment, able, moment.job("old", age_ms=1999)) == "able"
    assert risky(moment, able, moment.job("old", age_ms=2001)) == "old"


def test_the_earliest_end_has_every_gap_for_itself(moment):
    view = moment.view()
    one = earliest_end_ns(moment.job("a", remaining_ms=20), view, moment.now_ns)
    two = earliest_end_ns(moment.job("a", remaining_ms=40, gaps=2), view, moment.now_ns)
    assert (one - moment.now_ns, two - moment.now_ns) == (20 * moment.ms, 60 * moment.ms)


def test_a_high_priority_is_not_given_up(moment):
    late = {"age_ms": 105, "constraint_ms": 100, "remaining_ms": 60, "gaps": 3}
    can = moment.job("can", age_ms=950)
    assert risky(moment, moment.job("late", **late), can) == "can"
    assert risky(moment, moment.job("late", **late, priority="high"), can) == "late"
