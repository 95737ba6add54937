"""The figures mean what the summary says they mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.runtime.telemetry.figures import (
    Figures,
    MemorySampler,
    processor_figures,
    window_rates,
)
from heimdall.runtime.telemetry.jobs import ModelFigures
from heimdall.runtime.telemetry.spreads import percentiles, spread
from heimdall.vocabulary.events import Finish, RunChunk
from heimdall.vocabulary.processors import GPU
from heimdall.vocabulary.reasons import ALONE, AT_RISK, AWAITED, FIRST_COME, until_back

MS = 1_000_000


def test_windows_of_a_steady_run_all_show_the_target():
    rates = window_rates(np.full(300, 1000 / 30), 30)
    assert rates == {"mean": 30.0, "min": 30.0, "max": 30.0}


def test_one_slow_frame_lowers_its_window_only():
    intervals = np.full(30, 1000 / 30)
    intervals[12] += 100
    rates = window_rates(intervals, 30)
    assert rates["max"] == pytest.approx(30.0)
    assert rates["min"] == pytest.approx(1000 * 7 / (7 * 1000 / 30 + 100), abs=1e-3)
    assert rates["mean"] == pytest.approx(1000 * 30 / (1000 + 100), abs=1e-3)


@given(st.lists(st.floats(0.5, 500), min_size=1, max_size=200), st.sampled_from([30.0, 60.0]))
def test_the_mean_lies_between_the_extreme_windows_of_whole_runs(intervals, fps):
    rates = window_rates(np.array(intervals), fps)
    assert rates["min"] <= rates["max"]
    assert 1000 / max(intervals) - 1e-3 <= rates["mean"] <= 1000 / min(intervals) + 1e-3


def test_nothing_measured_is_null_not_zero():
    assert window_rates(np.array([]), 30) == {"mean": None, "min": None, "max": None}
    assert percentiles(np.array([])) == {"p50": None, "p99": None, "max": None}
    assert spread([])["mean"] is None


def test_a_frame_is_late_only_when_over_a_millisecond_past_its_deadline():
    figures = Figures(30, {})
    for presented_ns, deadline_ns in ((10, 10), (44, 43), (78 + 1e-6, 77)):
        figures.frame(int(presented_ns * MS), deadline_ns * MS, drawn_ns=0, render_ns=5 * MS)
    assert figures.late_frames == 1
    assert list(figures.recent_ms) == [34.0, pytest.approx(34.0)]


def test_the_summary_counts_after_warm_up_only():
    dnn = ModelFigures(whole_ns=20 * MS)
    figures = Figures(30, {"eye": dnn})
    dnn.latencies_ns.append(99 * MS)
    dnn.gpu = 1
    figures.frame(1, 1, 1, 5 * MS)
    figures.restart(figures.started_ns)
    dnn.latencies_ns.extend([10 * MS, 30 * MS])
    dnn.gpu = 2
    figures.frame(1, 1, 1, 6 * MS)
    summary = figures.summary(lone_render_ns=5 * MS, gap_utilization=0.5)
    assert summary["frames"] == 1
    assert summary["dnns"]["eye"]["inferences"] == 2
    assert summary["dnns"]["eye"]["latency_ms"]["mean"] == 20
    assert summary["gpu"]["useful_ms"] == 5 + 2 * 20


@pytest.mark.parametrize("stalled", range(1, 5))
def test_no_stall_is_forgotten_when_counting_starts_afresh(stalled):
    figures, now_ns = Figures(30, {}, simulated=True), 0
    for number in range(6):
        now_ns += (900 if number == stalled else 33) * MS
        figures.frame(now_ns, now_ns, now_ns, 1)
        if number == 2:
            figures.restart(now_ns)
    found = figures.summary(0, None, now_ns)
    assert found["longest_interval_ms"] == 900
    assert found["frame_interval_ms"]["max"] == (900 if stalled > 3 else 33)


def test_rates_are_told_beside_what_was_asked_for():
    asked, event_driven = ModelFigures(required_hz=2.0), ModelFigures()
    figures = Figures(30, {"eye": asked, "ear": event_driven}, simulated=True)
    for latency_ms, missed in ((10, False), (30, True), (20, False)):
        asked.finished(Finish(0, "eye", GPU, latency_ms * MS, missed, 1))
    for presented_ms, due_ms in ((0, 0), (33, 33), (70, 66), (100, 99)):
        figures.frame(presented_ms * MS, due_ms * MS, 0, 5 * MS)
    summary = figures.summary(0, None, now_ns=2_000_000_000)
    assert summary["late_rate"] == 0.25
    eye, ear = summary["dnns"]["eye"], summary["dnns"]["ear"]
    assert (eye["achieved_hz"], eye["required_hz"], eye["miss_rate"]) == (1.5, 2.0, 0.3333)
    assert (ear["achieved_hz"], ear["required_hz"], ear["miss_rate"]) == (0.0, None, None)
    assert Figures(30, {}, simulated=True).summary(0, None, now_ns=0)["late_rate"] is None


def test_the_age_of_pictures_is_told_over_the_run_and_of_the_last_second():
    figures = Figures(2, {}, simulated=True)
    assert figures.recent_picture_ms() is None
    assert figures.summary(0, None, now_ns=0)["picture_age_ms"] == {"p50": None, "p99": None}
    for age_ms in (90, 40, 30, 32):
        figures.picture(age_ms * MS)
    assert figures.recent_picture_ms() == 31.0
    assert figures.summary(0, None, now_ns=0)["picture_age_ms"]["p50"] == 36.0
    figures.restart(0)
    assert figures.recent_picture_ms() is None


def test_a_processor_is_busy_on_all_its_lanes():
    busy_ns = {"npu": 250 * MS, "cpu": 1000 * MS}
    assert processor_figures(busy_ns, {"cpu": 2}, 1.0) == {
        "npu": {"busy": 0.25, "busy_s": 0.25},
        "cpu": {"busy": 0.5, "busy_s": 1.0},
    }


def test_memory_is_what_it_was_while_there_is_no_handle_to_look():
    resource = pytest.importorskip("resource")
    sampler = MemorySampler(0)
    before = sampler.now_mb()
    assert before > 0
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        assert sampler.now_mb() == before
        assert sampler.summary()["end"] == round(before, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_who_decided_is_counted_whichever_dnn_it_was():
    figures = Figures(30, {}, simulated=True)
    assert figures.summary(0, None, 1)["chosen"] == {"chunks": 0, "by_policy": None, "reasons": {}}
    reasons = (AT_RISK, AT_RISK, ALONE, "utility", until_back("a"), until_back("b"), FIRST_COME)
    for job, reason in enumerate(reasons):
        figures.chose(RunChunk(job, "eye", 0, 0, GPU, 0, 1, 5, reason))
    chosen = figures.summary(0, None, 1)["chosen"]
    assert chosen["chunks"] == 7
    assert chosen["by_policy"] == pytest.approx(1 / 6, abs=1e-4)  # the CPU's own is no choice
    assert chosen["reasons"] == {AT_RISK: 2, ALONE: 1, "utility": 1, AWAITED: 2, FIRST_COME: 1}
    figures.restart(2)
    assert figures.summary(0, None, 3)["chosen"]["chunks"] == 0
