"""What benchmarks/disb.py makes of runs."""

from __future__ import annotations

import pytest

from benchmarks.disb import figures, table
from heimdall.lab.bench.scenario import load_scenario


def run(latency_ms: float, finished: int, dropped: int = 0) -> dict:
    def model(lone_ms: float, latency_ms: float, finished: int, dropped: int = 0) -> dict:
        return {
            "submitted": finished + dropped,
            "finished": finished,
            "dropped": dropped,
            "lone_ms": lone_ms,
            "latency_ms": {"p99": latency_ms, "mean": latency_ms / 2, "max": latency_ms},
        }

    asked = {"vgg19": model(10, latency_ms, 200, dropped), "resnet152-be": model(5, 9, finished)}
    return {"requests": asked, "seconds": 2}


def test_latency_is_over_that_alone_and_work_is_what_answers_take_alone():
    found = figures(load_scenario("disb-a"), [run(20, 100), run(40, 300)])
    assert (found["p99"], found["mean"]) == (3, 1.5)
    assert (found["answers_hz"], found["work"]) == (100, 0.5)


@pytest.mark.parametrize(("dropped", "known"), [(0, True), (2, True), (3, False)])
def test_the_99th_percentile_is_unknown_where_more_than_a_hundredth_was_dropped(dropped, known):
    found = figures(load_scenario("disb-a"), [run(20, 100, dropped)])
    assert (found["p99"] is not None) is known
    assert found["dropped"] == dropped


def test_throughput_is_compared_with_the_first_system():
    scenario = load_scenario("disb-a")
    systems = {name: figures(scenario, [run(20, count)]) for name, count in (("a", 100), ("b", 70))}
    assert table({"disb-a": systems}).splitlines()[-1].endswith("| 0.70 |")
