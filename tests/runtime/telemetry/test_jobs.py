"""The figures of jobs: who was late, by which multiple, how evenly answers came and what for."""

from __future__ import annotations

import pytest

from heimdall.runtime.telemetry.jobs import (
    ModelFigures,
    Outcome,
    request_figures,
    throughput_hz,
    violations,
)
from heimdall.vocabulary.events import Finish
from heimdall.vocabulary.plans import Utility
from heimdall.vocabulary.processors import GPU

MS = 1_000_000


def answered(latency_ms: float, *, slo_ms: float | None = None, at_ms: float = 5) -> Outcome:
    slo_ns = None if slo_ms is None else round(slo_ms * MS)
    return Outcome("net", round(at_ms * MS), round((at_ms + latency_ms) * MS), slo_ns)


DROPPED = Outcome("net", 0, None, 60 * MS, "too late")


def test_a_request_violates_a_multiple_that_it_exceeds_and_a_dropped_one_all():
    outcomes = [answered(20), answered(20.1), answered(90), answered(201), DROPPED]
    violations = request_figures(outcomes, {"net": 10 * MS})["net"]["violations"]
    assert violations == {"2": 0.8, "4": 0.6, "8": 0.6, "20": 0.4, "slo": 1.0}


def test_an_slo_is_each_requests_own():
    outcomes = [answered(30, slo_ms=30), answered(31, slo_ms=30), answered(31, slo_ms=40), DROPPED]
    assert request_figures(outcomes, {})["net"]["violations"]["slo"] == 0.5


def test_requests_without_an_slo_do_not_count_for_it():
    outcomes = [answered(1000), answered(31, slo_ms=30)]
    assert request_figures(outcomes, {})["net"]["violations"]["slo"] == 1.0
    assert request_figures([answered(1000)], {})["net"]["violations"]["slo"] is None


def test_counts_latencies_and_jitter():
    outcomes = [answered(10), answered(20), answered(30, at_ms=100), DROPPED]
    found = request_figures(outcomes, {"net": 10.5 * MS})["net"]
    assert [found[key] for key in ("submitted", "finished", "dropped")] == [4, 3, 1]
    assert found["reasons"] == {"too late": 1}
    assert found["latency_ms"] == {"mean": 20, "p50": 20, "p99": pytest.approx(29.8), "max": 30}
    assert found["jitter_ms"] == pytest.approx(8.165, abs=1e-3)  # the standard deviation
    assert found["lone_ms"] == 10.5


def test_unknown_figures_are_none():
    found = request_figures([], {"net": 10 * MS})["net"]
    assert found["violations"] == dict.fromkeys(("2", "4", "8", "20", "slo"))
    assert (found["jitter_ms"], found["latency_ms"]["mean"]) == (None, None)
    unknown = request_figures([answered(10, slo_ms=5)], {})["net"]
    assert (unknown["violations"]["2"], unknown["violations"]["slo"]) == (None, 1.0)
    assert unknown["lone_ms"] is None


def test_utility_falls_with_the_square_of_the_latency_to_zero_at_the_slo():
    outcomes = [answered(0, slo_ms=50), answered(50, slo_ms=50), answered(100, slo_ms=50), DROPPED]
    assert request_figures(outcomes, {})["net"]["utility"] == pytest.approx(-2 / 3, abs=1e-4)
    assert request_figures([answered(5)], {})["net"]["utility"] is None


def test_violations_of_all_models_are_weighted_by_their_requests():
    other = Outcome("other", 0, 50 * MS)
    alone = {"net": 10 * MS, "other": 5 * MS}
    assert violations([answered(10), answered(10), answered(10), other], alone)["4"] == 0.25
    assert violations([answered(30), other], {"net": 10 * MS})["2"] == 1.0  # other is not known


def test_models_are_told_apart():
    other = Outcome("other", 0, MS)
    found = request_figures([answered(10), other], {"other": MS, "net": MS})
    assert list(found) == ["other", "net"]
    assert [each["submitted"] for each in found.values()] == [1, 1]


def test_throughput_is_what_finished():
    assert throughput_hz([answered(10), answered(10), DROPPED], 0.5) == 4.0
    assert throughput_hz([], 0) is None


def test_utility_is_that_of_results_when_they_come():
    utility = Utility(beta=2.0, gamma=1.0, l0=(2.0 * 100) ** 2)  # 0 after 100 ms
    dnn, unknown = ModelFigures(utility=utility), ModelFigures()
    assert dnn.summary()["utility"] is None
    for each in (dnn, unknown):
        each.latencies_ns.extend([0, 100 * MS, 200 * MS])
    assert dnn.summary()["utility"] == pytest.approx((1 + 0 - 3) / 3, abs=1e-4)
    assert unknown.summary()["utility"] is None


def test_early_exits_are_counted_and_the_newest_is_known():
    dnn = ModelFigures()
    assert "exits" not in dnn.summary()
    for exit in ("exit1", "whole", "exit1", "whole", "exit1"):
        dnn.finished(Finish(1, "kind", GPU, 5 * MS, False, 1, exit=exit))
    assert dnn.exit == "exit1"
    assert dnn.summary()["exits"] == {"exit1": 3, "whole": 2}
    dnn.restart()
    assert "exits" not in dnn.summary()
