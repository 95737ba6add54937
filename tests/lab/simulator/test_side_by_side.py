"""Several systems simulated with the same chances."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.report import write_comparison
from heimdall.lab.bench.systems import parse_systems
from heimdall.lab.simulator.side_by_side import compare_simulated


def test_systems_get_the_same_requests(tmp_path):
    systems = "fcfs,response-ratio"
    traces, path = files(tmp_path, systems), tmp_path / "page.html"
    found = compare_simulated("split-1", None, systems, seconds=20, traces=traces)
    asked = [
        {name: each["submitted"] for name, each in run["requests"].items()}
        for run in found["systems"].values()
    ]
    assert asked[0] == asked[1]
    assert found["systems"]["fcfs"] != found["systems"]["response-ratio"]
    assert found["over_runs"]["fcfs"]["throughput_hz"]["n"] == 1
    write_comparison(path, found, parse_systems(systems), traces, "")
    text = path.read_text(encoding="utf-8")
    assert "Jitter" in text
    assert "response-ratio" in text


def files(folder, systems):
    return {name: folder / f"{name}.json" for name in systems.split(",")}


def test_an_app_is_compared_too_under_any_policy(tmp_path):
    systems = "max-total,fcfs,multithread"
    traces, path = files(tmp_path, systems), tmp_path / "page.html"
    found = compare_simulated("shopping", None, systems, seconds=2, traces=traces)
    assert [run["system"] for run in found["systems"].values()] == systems.split(",")
    assert found["systems"]["fcfs"]["fps"]["mean"] == pytest.approx(30, abs=0.5)
    write_comparison(path, found, parse_systems(systems), traces, "")
    assert "Frame rate" in path.read_text(encoding="utf-8")


def test_every_seed_counts():
    found = compare_simulated("split-1", None, "fcfs", seconds=5, seeds=2, seed=7, workers=1)
    assert found["seeds"] == [7, 8]
    assert [run["seed"] for run in found["runs"]["fcfs"]] == [7, 8]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"systems": "fcfs,multithread"}, "multithread has no queue of requests"),
        ({"systems": "fcfs,fcfs"}, "listed twice"),
        ({"systems": ""}, "no system given"),
        ({"systems": "fcfs", "seeds": 0}, "seeds=0"),
        ({"systems": "fcfs", "device": "lg-v51"}, "unknown device for requests"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(asked, message):
    with pytest.raises(ConfigError, match=message):
        compare_simulated("split-1", **{"device": None, **asked})


def test_a_timeline_that_cannot_be_written_loses_no_figures(tmp_path, caplog):
    (tmp_path / "file").touch()
    traces = {"fcfs": tmp_path / "file" / "fcfs.json"}
    found = compare_simulated("split-1", None, "fcfs", seconds=5, traces=traces)
    assert found["systems"]["fcfs"]["requests"]
    assert "fcfs: no timeline: cannot write trace" in caplog.text
