"""What XRBench's page is made of."""

from __future__ import annotations

import json

import pytest

from benchmarks import xrbench, xrbench_live
from benchmarks.simulated import Kept
from heimdall.lab.bench.scenario import load_scenario


@pytest.mark.parametrize(
    ("scores", "load"),
    [
        ([100, 100, 100], 3.0),  # it never falls
        ([100, 100, 80], 2.5),  # half-way between two points
        ([100, 80, 100], 1.5),  # it has to stay above
        ([50, 100, 100], 0.0),  # below at the first already
        ([100, 90, 0], 2.0),
    ],
)
def test_the_largest_load_is_that_up_to_which_the_score_stays_near_its_best(scores, load):
    assert xrbench.reached([1.0, 2.0, 3.0], scores) == pytest.approx(load)


def test_runs_are_made_once_and_kept(tmp_path, monkeypatch):
    kept = tmp_path / "runs.jsonl"
    made = xrbench.Runs("lg-v50", 2, Kept(kept)).at("xrbench-social-b", "fcfs", 0.5, False, 2)
    assert [run.keys() for run in made] == [{"score"}] * 2
    monkeypatch.setattr(xrbench, "slowed", None)  # nothing is simulated again
    again = xrbench.Runs("lg-v50", 2, Kept(kept)).at("xrbench-social-b", "fcfs", 0.5, False, 2)
    assert again == list(made)


def test_a_scenario_at_a_load_asks_for_that_share_of_the_gpu():
    slow = xrbench.slowed("xrbench-ar-gaming", "lg-v50", "max-total", 0.5, draws=False)
    lone_s = {name: ns / 1e9 for name, ns in slow.lone_ns.items()}
    assert slow.scenario.offered(lone_s) == pytest.approx(0.5)
    drawn = xrbench.slowed("xrbench-ar-gaming", "lg-v50", "max-total", 0.5, draws=True)
    assert drawn.scenario.fps == 60


def test_live_the_files_load_is_set(tmp_path):
    found = load_scenario(str(xrbench_live.at_load("xrbench-vr-gaming", 0.5, tmp_path)))
    assert (found.name, found.load, found.drop_late) == ("xrbench-vr-gaming", 0.5, True)


def test_the_page_has_what_was_measured_live(tmp_path, monkeypatch):
    figures = {"overall": [90.0, 92.0], "qoe": [1.0, 1.0]}
    drawn = {**figures, "fps": [30.0, 29.0], "p99": [34.0, 35.0]}
    points = {
        "xrbench-ar-gaming 0.5 alone": {"max-total": figures},
        "xrbench-ar-gaming 0.5 drawn": {"max-total": drawn},
    }
    path = tmp_path / "live.json"
    monkeypatch.setattr(xrbench_live, "KEPT", path)
    assert "Not measured yet" in xrbench_live.tables()
    other = {"xrbench-ar-gaming 0.5 drawn": {"lst": drawn}}
    path.write_text(json.dumps({"a CPU, 2 cores": points, "another, 4 cores": other}))
    page = xrbench_live.tables()
    assert page.count("Alone, at a load of 0.5 (a CPU, 2 cores):") == 1
    assert page.count("Beside a renderer, at a load of 0.5 (another, 4 cores):") == 1
    assert "| `max-total` | 91.0 ± 12.7 |" in page
    assert "29.5" in page
