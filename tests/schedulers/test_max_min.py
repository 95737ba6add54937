from __future__ import annotations

import pytest

from heimdall.schedulers.max_min import MaxMin


def chosen(moment, *jobs):
    choice = MaxMin().select(moment.view(*jobs), moment.now_ns)
    ids = {job.id: job.dnn for job in jobs}
    return ids[choice.assignments[0].job], choice.reason


def test_the_lowest_utility_runs(moment):
    # U = l0 - age^2, both with l0 = 1000^2
    young, old = moment.job("young", age_ms=100), moment.job("old", age_ms=300)
    assert chosen(moment, young, old) == ("old", "lowest utility")


def test_a_tight_constraint_has_the_lower_utility(moment):
    # 200^2 - 50^2 < 1000^2 - 150^2
    tight = moment.job("tight", age_ms=50, constraint_ms=200)
    assert chosen(moment, moment.job("loose", age_ms=150), tight)[0] == "tight"


def test_the_deadline_check_comes_first(moment):
    risky = moment.job("risky", age_ms=50, constraint_ms=100, l0=1e9)
    assert chosen(moment, moment.job("worse", age_ms=800), risky) == (
        "risky",
        "its deadline is at risk",
    )


def test_a_changing_scene_waits_literally(moment):
    """Eq. 2 adds alpha * C, so the DNN whose scene changed looks better off and is delayed."""
    still, moving = {"age_ms": 100}, {"age_ms": 120, "difference": 1e8}
    assert chosen(moment, moment.job("still", **still), moment.job("moving", **moving))[0] == (
        "still"
    )


def test_a_changing_scene_goes_first_when_aging(moment):
    still = moment.job("still", age_ms=120, content="aging")
    moving = moment.job("moving", age_ms=100, content="aging", difference=1e8)
    assert chosen(moment, still, moving)[0] == "moving"


@pytest.mark.parametrize("content", ["paper", "aging"])
def test_without_content_variation_both_forms_choose_alike(moment, content):
    a, b = moment.job("a", age_ms=100, content=content), moment.job("b", age_ms=90, content=content)
    assert chosen(moment, a, b)[0] == "a"


def test_it_runs_the_whole_proposed_chunk(moment):
    job = moment.job("a", age_ms=1)
    (assignment,) = MaxMin().select(moment.view(job), moment.now_ns).assignments
    assert (assignment.end_op, assignment.processor) == (7, "gpu")
