"""The bounds: each is missed by what it is about, and by nothing else."""

from __future__ import annotations

import pytest

from heimdall.lab.faults.fault import Excuse, Fault
from heimdall.lab.faults.judge import judge
from heimdall.lab.faults.notes import Job
from heimdall.lab.faults.trial import Outcome
from tests.lab.faults.series import S, frames, results, seen

FAULT = Fault("made-up", "Something goes wrong.")


def outcome(run=None, longest_ms=34.0, errors=("detect: it failed",), **more):
    summary = {"longest_interval_ms": longest_ms, "errors": list(errors), "outputs": {}}
    given = {"status": 0, "ended_ns": 15 * S + S // 2, "summary": summary, "said": [], "left": []}
    return Outcome(run or seen(), **{**given, **more})


def test_a_run_that_went_on_has_borne_it():
    found = judge(FAULT, outcome())
    assert found["why"] == []
    assert found["passed"]
    assert found["told"] == "detect: it failed"
    assert found["ended_in_s"] == 0.5


def test_what_the_overlay_said_is_told_too():
    assert judge(FAULT, outcome(errors=()))["why"] == ["it was not named to the user"]
    run = seen(told=[(6 * S, "detect hangs")])
    assert judge(FAULT, outcome(run, errors=()))["told"] == "detect hangs"


@pytest.mark.parametrize(
    ("name", "run", "more", "why"),
    [
        ("frames", {"frames": frames(15, (7.0, 7.2))}, {"longest_ms": 233}, "worst third"),
        ("mean", {"frames": frames(15, (7.0, 8.0))}, {"longest_ms": 1000}, "on average"),
        ("hidden", {"frames": frames(15, (7.0, 7.06))}, {}, "the summary says 34.0"),
        ("lost", {"jobs": {1: Job("hand", 6 * S, 6 * S + 9, "lost")}}, {}, "1 results"),
        ("left", {}, {"left": ["thread x"]}, "left: thread x"),
        ("slow end", {}, {"ended_ns": 18 * S}, "3.0 s to end"),
        ("no summary", {}, {"summary": None, "status": 1, "said": ["error: no"]}, "status 1"),
        ("killed", {}, {"status": None, "summary": None}, "was killed"),
        ("nothing injected", {"acted": []}, {}, "did not take place"),
        ("before", {"began_ns": None, "ended_ns": None}, {}, "before the fault"),
    ],
)
def test_each_bound_can_be_missed(name, run, more, why):
    found = judge(FAULT, outcome(seen(**run), **more))
    assert not found["passed"]
    assert any(why in each for each in found["why"])


def test_a_dnn_that_is_not_at_fault_must_not_starve():
    run = seen()
    run.results["hand"] = results(10, 15, (4.95, 10.05))
    assert judge(FAULT, outcome(run))["why"] == ["hand: no result while the fault was there"]
    run = seen()
    run.results["detect"] = results(5, 15, (4.95, 10.05))
    assert judge(FAULT, outcome(run))["why"] == []


def test_a_stall_is_excused_only_while_its_cause_is_there_and_only_if_it_is_shown():
    stalled = seen(frames=frames(15, (5.1, 8.1)), acted=[(5 * S, "")])
    held = Fault("made-up", "A callback blocks.", excuse=Excuse.CALLBACK)
    assert judge(held, outcome(stalled, longest_ms=3000.0))["why"] == []
    (hidden,) = judge(held, outcome(stalled))["why"]
    assert "the summary says" in hidden
    before = seen(frames=frames(15, (2.0, 2.5)), acted=[(5 * S, "")])
    assert judge(held, outcome(before, longest_ms=500.0))["why"] != []


def test_where_the_system_took_the_cores_all_is_well_a_second_later():
    taken = Fault("made-up", "All cores are taken.", excuse=Excuse.SYSTEM, told=False)
    soon = seen(frames=frames(15, (5.1, 10.8)))
    assert judge(taken, outcome(soon, longest_ms=6000.0, errors=()))["why"] == []
    late = seen(frames=frames(15, (5.1, 11.5)))
    assert judge(taken, outcome(late, longest_ms=6500.0, errors=()))["why"] != []


def test_a_run_that_its_fault_ends_is_judged_until_then():
    closed = Fault("made-up", "The window is closed.", ends=True, told=False)
    run = seen(frames=frames(5), ended_ns=None, over_ns=5 * S)
    assert judge(closed, outcome(run, ended_ns=5 * S + S // 4))["why"] == []
    assert judge(closed, outcome(run, ended_ns=8 * S))["why"] == ["it took 3.0 s to end"]
