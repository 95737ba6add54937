"""The page, and that every gap in it has a reason."""

from __future__ import annotations

import re

import pytest

from benchmarks.paper import contest
from benchmarks.paper.findings import Findings
from benchmarks.paper.page import page
from benchmarks.paper.runs import all_runs
from benchmarks.paper.sensitivity import parameters
from benchmarks.paper.values import Paper, look_up, read_values


def runs_of(values):
    """What over_runs makes of them."""
    mean = sum(values) / len(values)
    found = {"mean": mean, "low": mean - 1, "high": mean + 1, "n": len(values)}
    return {**found, "least": min(values), "most": max(values)}


PAPER = Paper.model_validate(
    {
        "headline": [
            {
                "claim": "speed",
                "section": "1",
                "at": "runs/a/fps/mean",
                "paper": 12,
                "within": 0.15,
                "command": "heimdall simulate a",
                "why": "it is slow",
            }
        ],
        "figure": [
            {
                "name": "Fig. 0",
                "section": "1",
                "title": "of nothing",
                "note": "It differs.",
                "not_here": "there is none.",
                "rows": [
                    {"what": "speed, fps", "paper": {"mean": 12, "min": 6}, "at": "runs/a/fps"},
                    {"what": "drawn", "at": "-", "live_at": "runs/a/power_w"},
                ],
            }
        ],
    }
)
FPS = {"mean": runs_of([11, 12]), "min": runs_of([4, 6]), "max": runs_of([20, 20])}
SIMULATED = {"device": "Phone", "seconds": 60.0, "seeds": 2, "runs": {"a": {"fps": FPS}}}
LIVE = {
    "machine": {"processor": "Chip", "cores": 2, "memory_mb": 100},
    "device": {"gpu": "PoCL", "mode": "real-time", "renderer": "llvmpipe"},
    "seconds": 10.0,
    "turns": 5,
    "networks": {"EAST": {"model": "ppocr"}},
    "runs": {"a": {"power_w": runs_of([5.0, 5.5])}},
}
POINT = {"fps": 30, "size": [1280, 720], "dnns": 1, "missed": runs_of([0.25]), "never": []}
SWEEP = [
    {**POINT, "fps": fps, "size": list(size), "system": system, "rate": {"mean": runs_of([rate])}}
    for fps in (30, 60)
    for size in ((1280, 720), (1920, 1080), (2560, 1440), (3840, 2160))
    for system, rate in (("multithread", 20.0), ("max-total", 59.9))
]


def made(live=LIVE, tried=(), stale=0, paper=PAPER):
    sensitivity = {"turn_ms": [(value, {"runs": {"a": {"fps": FPS}}}) for value in tried]}
    return page(paper, Findings(SIMULATED, live, sensitivity, SWEEP, stale), {"sweep": "s.png"})


def test_a_figure_has_the_paper_the_simulation_and_the_live_runs_side_by_side():
    text = made()
    assert "## Fig. 0: of nothing (section 1)" in text
    assert re.search(r"speed, fps +\| +12 +\| 11.50 \[10.50, 12.50\] +\| 11 to 12 \|", text)
    assert re.search(r"lowest third of a second \| +6 +\| +5.00", text)
    assert re.search(r"drawn +\| chart \| +– \| +\| 5.25 \[4.25, 6.25\] \| 5.00 to 5.50", text)
    assert "It differs." in text
    assert "Not live: there is none." in text


def test_a_headline_has_its_verdict_its_command_and_where_it_holds():
    text = made(tried=(10, 20))
    assert re.search(r"speed +\| +12 .*\| +reproduced \| +`heimdall simulate a`", text)
    assert re.search(r"\| speed +\| +all \|", text)
    assert "it is slow" not in text


def test_the_page_says_what_it_ran_on():
    text = made()
    assert "Chip, 2 cores, 100 MB" in text
    assert "real-time" in text
    assert "ppocr for EAST" in text
    assert "![sweep](s.png)" in text


def test_without_a_live_run_the_page_says_how_to_make_one():
    assert "--live" in made(live=None).split("##")[0]


def test_results_of_other_sources_are_confessed():
    assert "3 of the runs shown are of an earlier version" in made(stale=3)
    assert "earlier version" not in made()


def test_what_speaks_against_it_is_said_in_four_parts():
    text = made().split("## Threats to validity")[1]
    assert [
        word for word in ("Construct", "Internal", "External", "Conclusion") if word in text
    ] == [
        "Construct",
        "Internal",
        "External",
        "Conclusion",
    ]


def test_the_sweep_says_how_many_dnns_leave_the_frame_rate_alone():
    lines = made().split("Past the paper")[1].splitlines()
    held = next(line.split() for line in lines if line.startswith("| max-total"))
    assert held[3::2] == ["1"] * 8


def test_what_cannot_be_simulated_has_a_reason(results):
    for figure in read_values().figure:
        missing = [
            line.what
            for row in figure.rows
            for line in row.lines()
            if look_up(results, line.at) is None and not line.at.startswith("accuracy/")
        ]
        assert not missing or figure.not_simulated, (figure.name, missing)


def test_every_headline_is_simulated(results):
    for headline in read_values().headline:
        assert look_up(results, headline.at) is not None, headline.claim


def test_what_cannot_run_live_has_a_reason():
    simulated_only = {run.name for run in all_runs() if not run.live}
    for figure in read_values().figure:
        for row in figure.rows:
            path = (row.live_at or row.at).split("/")
            cannot = path == ["-"] or path[1] in {*simulated_only, "ArcFace"}
            assert not cannot or figure.not_here, (figure.name, row.what)


def test_strong_baselines_say_what_they_cost_the_others(results):
    text = contest.section(Findings(results, None, {}, []), "")
    row = next(line for line in text.splitlines() if line.startswith("| priorities"))
    assert re.search(r"of 2 Hz", row)
    assert len([line for line in text.splitlines() if line.startswith("| max-total")]) == 3


@pytest.mark.parametrize("parameter", parameters(), ids=lambda one: one.name)
def test_the_usual_value_is_among_those_that_are_tried(parameter):
    assert parameter.usual in parameter.values
