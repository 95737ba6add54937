"""XRBench's scenarios, simulated."""

from __future__ import annotations

import pytest

from heimdall.lab.bench.scenario import load_scenario, scenario_names
from heimdall.lab.simulator.simulate import simulate

SCENARIOS = [name for name in scenario_names() if name.startswith("xrbench-")]
# Requests a second that are wanted, those that come by chance left out.
RATES = {
    "xrbench-social-a": {"eyes": 60, "gaze": 60, "depth-refinement": 30, "hands": 30},
    "xrbench-social-b": {"eyes": 60, "gaze": 60, "actions": 30},
    "xrbench-outdoor-a": {"keyword": 3, "segmentation": 10, "objects": 30},
    "xrbench-outdoor-b": {"keyword": 3, "objects": 30},
    "xrbench-assistant": {
        "keyword": 3, "segmentation": 10, "objects": 10, "depth": 30, "planes": 15,
    },
    "xrbench-ar-gaming": {"hands": 45, "depth": 30, "planes": 15},
    "xrbench-vr-gaming": {"hands": 45, "eyes": 60, "gaze": 60},
}  # fmt: skip


def run(scenario: str, system: str = "max-total", rate: float = 1.0, **options):
    return simulate(scenario, None, system, seconds=5, variations={"rate": rate}, **options)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_frame_is_asked_for_whatever_becomes_of_it(name):
    requests = run(name)["requests"]
    for model, rate_hz in RATES[name].items():
        assert requests[model]["submitted"] - 5 * rate_hz in (0, 1)  # the last one may be early
    by_chance = requests.keys() - RATES[name].keys()
    assert by_chance <= {"speech"}


def test_the_scenarios_are_those_of_the_paper():
    assert RATES.keys() == set(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_machine_that_is_fast_enough_has_all(name):
    score = run(name, "fcfs", rate=0.01, seed=3)["score"]
    assert score["overall"] == pytest.approx(100, abs=0.1)
    assert score["qoe"] == 1.0


def test_what_cannot_begin_in_time_is_dropped_under_any_system():
    for system in ("max-total", "fcfs", "lst"):
        found = run("xrbench-vr-gaming", system, rate=0.5)
        eyes, gaze = found["requests"]["eyes"], found["requests"]["gaze"]
        assert eyes["submitted"] == gaze["submitted"]
        assert found["score"]["qoe"] < 1
        assert 0 < found["score"]["overall"] < 100


def test_what_has_begun_ends():
    found = run("xrbench-social-b", "fcfs", rate=0.5)
    reasons = set().union(*(each["reasons"] for each in found["requests"].values()))
    assert reasons <= {
        "it had not begun at its deadline", "eyes was late", "eyes was dropped",
    }  # fmt: skip
    late = found["requests"]["eyes"]["violations"]["slo"]
    assert late > found["requests"]["eyes"]["dropped"] / found["requests"]["eyes"]["submitted"]


def test_speech_comes_by_chance_and_the_same_chance_for_every_system():
    asked = {
        system: run("xrbench-assistant", system, rate=0.05, seed=7)["requests"]["speech"]
        for system in ("fcfs", "max-total")
    }
    assert asked["fcfs"]["submitted"] == asked["max-total"]["submitted"]


def test_others_have_no_score():
    assert load_scenario("split-1").drop_late is False
    assert simulate("split-1", None, "fcfs", seconds=5)["score"] is None


UNCOORDINATED = ("multithread", "edf", "render-first", "fixed-5", "multithread-onnxruntime-all")


@pytest.mark.parametrize("system", UNCOORDINATED)
def test_threads_answer_requests_by_the_same_rule(system):
    found = run("xrbench-vr-gaming", system, rate=0.3)
    asked = run("xrbench-vr-gaming", "fcfs", rate=0.3)
    submitted = {name: each["submitted"] for name, each in found["requests"].items()}
    assert submitted == {name: each["submitted"] for name, each in asked["requests"].items()}
    reasons = set().union(*(each["reasons"] for each in found["requests"].values()))
    assert reasons <= {"it had not begun at its deadline", "eyes was late", "eyes was dropped"}
    assert run("xrbench-vr-gaming", system, rate=0.01)["score"]["overall"] > 99


def test_threads_take_turns_so_two_networks_at_once_both_take_longer():
    alone = run("xrbench-social-b", "multithread", rate=0.02)["requests"]["eyes"]
    beside = run("xrbench-social-a", "multithread", rate=0.02)["requests"]["eyes"]
    assert beside["latency_ms"]["max"] > 1.2 * alone["latency_ms"]["max"]


@pytest.mark.parametrize("system", ["max-total", "lst", "multithread", "edf-render-first"])
def test_a_renderer_may_run_beside(system):
    found = run("xrbench-ar-gaming", system, rate=0.03, fps=60, size=(1920, 1080))
    assert found["size"] == [1920, 1080]
    assert found["requests"].keys() == {"hands", "depth", "planes"}
    assert found["score"]["overall"] > 90
    if system != "multithread":
        assert found["fps"]["mean"] == pytest.approx(60, rel=0.01)


def test_what_still_waits_when_frames_end_is_neither_met_nor_missed():
    found = run("xrbench-ar-gaming", "fcfs", rate=0.02, fps=60)
    assert any("waited when it ended" in each["reasons"] for each in found["requests"].values())
    assert found["score"]["overall"] == pytest.approx(100, abs=0.1)
