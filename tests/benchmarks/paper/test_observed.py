"""What is kept of a run."""

from __future__ import annotations

import pytest


def test_a_coordinated_run_tells_who_had_the_gpu_and_what_chunks_cost(results):
    run = results["each"][0]["runs"]["shopping max-total"]
    assert set(run["utility"]) == {"detect", "segment", "hand", "style"}
    assert 0 < sum(run["had_gpu"].values()) <= 1
    assert 0 < run["overhead_of_all"] < 0.1


def test_a_move_to_the_cpu_has_its_time(results):
    runs = results["each"][0]["runs"]
    assert 0 < runs["shopping max-total"]["moved_ms"]["detect"] < 6000
    assert runs["three max-min-nooffload"]["moved_ms"] == {}


def test_a_baseline_has_neither_utility_nor_chunks(results):
    run = results["each"][0]["runs"]["shopping multithread"]
    assert "utility" not in run
    assert "overhead" not in run
    assert run["gpu_busy"] == pytest.approx(1, abs=0.05)


def test_rates_count_inferences_a_second(results):
    style = results["each"][0]["runs"]["alone"]["dnns"]["style"]
    assert style["achieved_hz"] == pytest.approx(1000 / style["end_to_end_ms"]["mean"], rel=0.1)


def test_an_excerpt_has_utilities_and_who_had_which_processor(results):
    found = results["excerpts"]["three max-total-nooffload"]
    assert {name for _, name, _, _ in found["spans"]} >= {"hand", "segment", "detect"}
    assert max(ms for ms, _ in found["utility"]["hand"]) <= 2500


def test_seeds_are_put_together_with_an_interval(results):
    found = results["runs"]["shopping max-total"]["dnns"]["hand"]["latency_ms"]["mean"]
    assert found["n"] == 2
    assert found["least"] <= found["mean"] <= found["most"]
    assert found["low"] <= found["mean"] <= found["high"]


def test_derived_numbers_follow_from_the_runs(results):
    first = results["each"][0]
    found = first["derived"]
    dnns = {name: first["runs"][name]["dnns"]["style"] for name in ("together", "alone")}
    ratio = dnns["together"]["latency_ms"]["mean"] / dnns["alone"]["latency_ms"]["mean"]
    assert found["slowdown"] == pytest.approx(ratio)
    assert found["sum_of_four"] == pytest.approx(95 + 207 + 256 + 60, abs=0.1)
    assert found["perfect_fps"] == pytest.approx(1000 / 618, abs=0.01)
    assert found["short_ops"] == pytest.approx(0.898, abs=0.005)
    assert found["gap_ms"] == pytest.approx(30.6, abs=0.1)
    assert found["face_on_cpu"] == pytest.approx(106, rel=0.2)
    assert found["tflops"] == pytest.approx(36.15 / 586, rel=0.01)
