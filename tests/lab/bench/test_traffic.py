"""When requests come: open streams, closed loops, and what follows from answers."""

from __future__ import annotations

from typing import Any

import pytest

from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.traffic import Arrival, Traffic
from heimdall.runtime.telemetry.jobs import Outcome

SECOND = 1_000_000_000


def scenario(**said: Any) -> Scenario:
    return Scenario.model_validate({"name": "test", "title": "Test", **said})


def stream(process: str, rate_hz: float = 10.0, **said: Any) -> dict[str, Any]:
    return {"event": {"process": process, "rate_hz": rate_hz}, **said}


def test_a_scenario_ends_after_its_number_of_requests_of_all_models():
    models = {"a": stream("poisson"), "b": stream("poisson", 30.0)}
    found = Traffic(scenario(requests=1000, models=models)).arrivals_ns()
    assert len(found["a"]) + len(found["b"]) == 1000
    assert 200 < len(found["a"]) < 300  # a quarter
    last = {name: times[-1] for name, times in found.items()}
    assert abs(last["a"] - last["b"]) < SECOND  # they are the first ones of both


def test_the_same_seed_gives_the_same_trace_and_streams_do_not_depend_on_each_other():
    both = scenario(seconds=20, models={"a": stream("poisson"), "b": stream("poisson")})
    alone = scenario(seconds=20, models={"a": stream("poisson")})
    found = Traffic(both, 3).arrivals_ns()
    assert found == Traffic(both, 3).arrivals_ns()
    assert found != Traffic(both, 4).arrivals_ns()
    assert found["a"] != found["b"]
    assert found["a"] == Traffic(alone, 3).arrivals_ns()["a"]


def test_a_periodic_stream_is_even_from_a_phase_of_its_own_on():
    models = {"a": stream("periodic"), "b": stream("periodic")}
    found = Traffic(scenario(seconds=5, models=models)).arrivals_ns()
    assert [len(times) for times in found.values()] == [50, 50]
    assert found["a"][0] != found["b"][0]
    gaps = {late - early for early, late in zip(found["a"], found["a"][1:], strict=False)}
    assert all(abs(gap - SECOND // 10) <= 1 for gap in gaps)
    assert max(found["a"]) < 5 * SECOND


def test_a_poisson_stream_has_its_rate():
    found = Traffic(scenario(seconds=1000, models={"a": stream("poisson")})).arrivals_ns()
    assert len(found["a"]) == pytest.approx(10_000, rel=0.05)


def test_an_event_may_make_several_requests():
    models = {"a": stream("periodic", number=[1, 3])}
    times = Traffic(scenario(seconds=100, models=models)).arrivals_ns()["a"]
    counts = [times.count(each) for each in set(times)]
    assert set(counts) == {1, 3}
    assert counts.count(3) == pytest.approx(500, abs=60)


LOOP = {
    "detect": {"event": {"process": "closed"}, "number": 2},
    "face": {"after": "detect", "number": 3},
    "name": {"after": "face"},
}


def test_a_closed_loop_goes_on_when_all_that_it_led_to_is_answered():
    traffic = Traffic(scenario(frames=2, models=LOOP))
    assert traffic.arrivals_ns() == {"detect": [0, 0], "face": [], "name": []}
    assert traffic.follow("detect", True, 10) == [("face", 10)] * 3
    assert traffic.follow("detect", False, 11) == []  # dropped: there are no faces to look at
    for _ in range(3):
        assert traffic.follow("face", True, 20) == [("name", 20)]
    assert traffic.follow("name", True, 30) == []
    assert traffic.follow("name", True, 31) == []
    assert traffic.follow("name", True, 40) == [("detect", 40)] * 2  # the second round
    assert traffic.frames_ns == {"detect": [40]}
    assert traffic.follow("detect", False, 50) == []
    assert traffic.follow("detect", False, 60) == []  # that was the last round
    assert traffic.frames_ns == {"detect": [40, 20]}


def test_a_closed_loop_may_end_by_time():
    models = {"a": {"event": {"process": "closed"}}}
    traffic = Traffic(scenario(seconds=1, models=models))
    traffic.arrivals_ns()
    assert traffic.follow("a", True, SECOND - 1) == [("a", SECOND - 1)]
    assert traffic.follow("a", True, SECOND) == []


def test_what_follows_an_open_stream_comes_on_top():
    models = {"a": stream("poisson"), "b": {"after": "a", "number": 2}}
    traffic = Traffic(scenario(requests=5, models=models))
    assert len(traffic.arrivals_ns()["a"]) == 5
    assert traffic.follow("a", True, 7) == [("b", 7), ("b", 7)]
    assert traffic.follow("b", True, 8) == []


EYES = {
    "eyes": {
        "event": {"process": "periodic", "rate_hz": 50, "phase": 0, "jitter_ms": 4},
        "deadline": "period",
    },
    "gaze": {"after": "eyes", "deadline": "period"},
    "blink": {"after": "gaze", "deadline": "period", "number": 2},
}
MS = 1_000_000


def eyes() -> Traffic:
    return Traffic(scenario(seconds=1, drop_late=True, models=EYES))


def test_a_frame_ends_with_its_period_whatever_the_jitter():
    traffic = eyes()
    times = traffic.arrivals_ns()["eyes"]
    ends = [at_ns + traffic.slo_ns("eyes", at_ns) for at_ns in times]
    assert ends == [20 * MS * number for number in range(1, 51)]
    assert any(at_ns % (20 * MS) for at_ns in times)


def test_what_follows_has_the_rest_of_its_frame():
    eye = Outcome("eyes", 41 * MS, 50 * MS, 19 * MS)
    (gaze,) = eyes().come_of(eye, 50 * MS)
    assert gaze == Arrival("gaze", 50 * MS, 10 * MS)


def test_what_follows_a_frame_that_is_over_is_lost_with_all_behind_it():
    late = Outcome("eyes", 41 * MS, 65 * MS, 19 * MS)
    gaze, *blinks = eyes().come_of(late, 65 * MS)
    assert (gaze.model, gaze.lost) == ("gaze", "eyes was late")
    assert [(each.model, each.lost) for each in blinks] == [("blink", "gaze was dropped")] * 2


def test_what_would_have_followed_a_dropped_frame_is_dropped_too():
    dropped = Outcome("eyes", 41 * MS, None, 19 * MS, "it had not begun at its deadline")
    found = eyes().come_of(dropped, 65 * MS)
    assert [each.model for each in found] == ["gaze", "blink", "blink"]
    assert all(each.lost for each in found)


def test_elsewhere_a_dropped_request_takes_nothing_with_it():
    models = {"a": stream("poisson"), "b": {"after": "a"}}
    traffic = Traffic(scenario(seconds=5, models=models))
    assert traffic.come_of(Outcome("a", 0, None, None, "full"), 5) == []
    assert traffic.come_of(Outcome("a", 0, 5, None), 5) == [Arrival("b", 5)]
