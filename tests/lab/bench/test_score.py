"""XRBench's scores."""

from __future__ import annotations

import pytest

from heimdall.lab.bench.score import real_time, score
from heimdall.runtime.telemetry.jobs import Outcome

MS = 1_000_000


def answered(latency_ms: float, model: str = "a", slo_ms: int | None = 16) -> Outcome:
    slo_ns = None if slo_ms is None else slo_ms * MS
    return Outcome(model, 0, round(latency_ms * MS), slo_ns)


def dropped(model: str = "a") -> Outcome:
    return Outcome(model, 0, None, 16 * MS, "late")


def test_real_time_is_a_step_at_the_deadline():
    assert real_time(0) == 0.5
    assert real_time(-MS) == pytest.approx(1, abs=1e-6)
    assert real_time(MS) == pytest.approx(0, abs=1e-6)
    assert real_time(10_000 * MS) == 0.0 or real_time(10_000 * MS) < 1e-100


def test_what_is_in_time_is_worth_all():
    found = score([answered(5), answered(9)])
    assert (found["real_time"], found["qoe"], found["overall"]) == (1.0, 1.0, 100.0)
    assert found["energy"] is None


def test_a_dropped_frame_counts_twice():
    found = score([answered(5), answered(5), answered(5), dropped()])
    assert found["qoe"] == 0.75
    assert found["real_time"] == 1.0  # of what was finished
    assert found["overall"] == pytest.approx(100 * 0.75 * 0.75)


def test_a_late_frame_counts_once():
    found = score([answered(5), answered(30)])
    assert (found["real_time"], found["qoe"], found["overall"]) == (0.5, 1.0, 50.0)


def test_a_scenario_is_the_mean_of_its_models():
    """The paper's example: VR gaming, 1.000, 1.000 and 0.744 of real time."""
    late = [answered(5, "c")] * 744 + [answered(40, "c")] * 256
    found = score([answered(5, "a"), answered(5, "b"), *late])
    assert found["overall"] == pytest.approx(100 * (1 + 1 + 0.744) / 3, abs=0.01)
    assert found["models"]["c"]["real_time"] == 0.744


def test_energy_lowers_what_an_answer_is_worth():
    found = score([answered(5), answered(5, "b")], {"a": 150.0, "b": 3000.0})
    assert found["models"]["a"]["energy"] == 0.9
    assert found["models"]["b"]["energy"] == 0.0
    assert found["overall"] == pytest.approx(45)


def test_models_without_an_slo_have_no_score():
    assert score([answered(5, slo_ms=None)]) is None
    assert list(score([answered(5, slo_ms=None), answered(5, "b")])["models"]) == ["b"]


def test_where_nothing_was_finished_real_time_is_unknown():
    found = score([dropped()])
    assert found["real_time"] is None
    assert found["overall"] == 0.0
