"""Rates, the worst window, losses and recovery of made-up runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.lab.faults.notes import Job
from heimdall.lab.faults.times import (
    fps_mean,
    is_slow,
    lost_results,
    rates,
    recovery_s,
    worst_window,
)
from tests.lab.faults.series import FPS, S, frames, results, seen


def test_a_steady_run_has_its_rate_in_every_window():
    assert fps_mean(frames(5)) == pytest.approx(FPS, rel=1e-6)
    assert worst_window(frames(5), FPS) == FPS


def test_one_frame_that_is_left_out_costs_three_a_second_in_the_worst_window():
    times = frames(5)
    del times[60]
    worst = worst_window(times, FPS)
    assert worst == pytest.approx(27)
    assert not is_slow(worst, FPS)
    del times[60]
    assert is_slow(worst_window(times, FPS), FPS)


def test_a_stall_of_a_third_of_a_second_leaves_a_window_empty():
    assert worst_window(frames(5, (2.0, 2.4)), FPS) == 0
    assert fps_mean(frames(5, (2.0, 3.0))) < 25


def test_what_is_excused_is_not_looked_at():
    stalled = frames(5, (2.0, 3.0))
    assert worst_window(stalled, FPS, (2 * S, 3 * S)) == FPS
    assert fps_mean(stalled, (2 * S, 3 * S)) == pytest.approx(FPS, rel=1e-6)
    assert worst_window(stalled, FPS, (4 * S, 5 * S)) == 0


def test_too_few_frames_have_no_rate():
    assert fps_mean([]) is None
    assert fps_mean([S]) is None
    assert worst_window([], FPS) is None
    assert worst_window(frames(0.1), FPS) is None


@given(st.sets(st.integers(1, 148), max_size=60))
def test_the_worst_window_is_never_better_with_fewer_frames(missing):
    times = frames(5)
    fewer = [each for index, each in enumerate(times) if index not in missing]
    assert worst_window(fewer, FPS) <= worst_window(times, FPS)
    assert worst_window(fewer, FPS) <= fps_mean(fewer) + 1e-6 or not missing


@given(st.lists(st.floats(-0.012, 0.012), min_size=151, max_size=151))
def test_jitter_alone_costs_at_most_one_frame_of_a_window(jitter):
    times = [each + round(late * S) for each, late in zip(frames(5), jitter, strict=True)]
    assert worst_window(times, FPS) >= 27 - 1e-6


def test_a_result_is_lost_when_it_failed_or_was_forgotten():
    jobs = {
        1: Job("hand", 5 * S, 5 * S + 100, "result"),
        2: Job("hand", 6 * S, 6 * S + 100, "lost"),
        3: Job("hand", 6 * S, 6 * S + 100, "again"),
        4: Job("hand", 7 * S),  # and never heard of again
        5: Job("hand", 15 * S - 1000),  # under way when the run ended
        6: Job("hand", 14 * S, 15 * S + 500, "lost"),  # by the end of the run
        7: Job("detect", 6 * S, 15 * S + 500, "lost"),  # that too, but stuck for long by then
    }
    assert lost_results(seen(jobs=jobs, acted=[]), 16 * S) == 3


def test_what_the_fault_took_from_its_own_dnn_is_not_lost():
    jobs = {number: Job("detect", number * S, number * S + 100, "lost") for number in (6, 7)}
    assert lost_results(seen(jobs=jobs), 16 * S) == 1
    assert lost_results(seen(jobs=jobs, acted=[(6 * S, "detect"), (7 * S, "detect")]), 16 * S) == 0
    assert lost_results(seen(jobs=jobs, acted=[(6 * S, ""), (7 * S, "")]), 16 * S) == 2


def test_rates_before_while_and_after():
    run = seen()
    run.results["detect"] = results(5, 15, (5.0, 10.0))
    assert rates(run)["detect"]["before_hz"] == pytest.approx(5, abs=0.3)
    assert rates(run)["detect"]["during_hz"] < 0.3
    assert rates(run)["hand"]["during_hz"] == pytest.approx(10, abs=0.3)


def test_nothing_to_recover_from_takes_no_time():
    assert recovery_s(seen(), 15 * S) == 0


def test_frames_that_stall_beyond_the_fault_take_until_they_come_again():
    assert recovery_s(seen(frames=frames(15, (9.0, 11.5))), 15 * S) == pytest.approx(1.5, abs=0.05)


def test_frames_that_never_come_again_never_recover():
    assert recovery_s(seen(frames=frames(15, (9.0, 15.1))), 15 * S) is None


def test_a_dnn_that_comes_back_late_counts():
    run = seen()
    run.results["hand"] = results(10, 15, (5.0, 12.0))
    assert recovery_s(run, 15 * S) == pytest.approx(2.0, abs=0.05)


def test_a_dnn_that_does_not_come_back_never_recovers():
    run = seen()
    run.results["hand"] = results(10, 5)
    assert recovery_s(run, 15 * S) is None


def test_a_dnn_that_was_hardly_asked_for_is_not_waited_for():
    run = seen()
    run.results["style"] = [1 * S, 3 * S]
    assert recovery_s(run, 15 * S) == 0
