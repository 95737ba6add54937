"""The page, and that every gap in it has a reason."""

from __future__ import annotations

from benchmarks.paper.page import page
from benchmarks.paper.runs import all_runs
from benchmarks.paper.values import Figure, look_up, read_values

POINT = {"fps": 30, "size": [1280, 720], "dnns": 1, "slower": 1.0, "missed": 0.25, "never": []}
SWEEP = {
    "seconds": 1,
    "points": [
        {**POINT, "fps": fps, "size": list(size), "system": system, "rate": {"mean": rate}}
        for fps in (30, 60)
        for size in ((1280, 720), (1920, 1080), (2560, 1440))
        for system, rate in (("multithread", 20.0), ("max-total", 59.9))
    ],
}
FIGURE = Figure.model_validate(
    {
        "name": "Fig. 0",
        "section": "1",
        "title": "of nothing",
        "note": "It differs.",
        "not_here": "there is none.",
        "rows": [
            {"what": "speed, fps", "paper": 12, "at": "runs/a/fps"},
            {"what": "drawn", "at": "-", "live_at": "runs/a/power_w"},
        ],
    }
)
SIMULATED = {"device": "Phone", "seconds": 60.0, "runs": {"a": {"fps": 11.5}}}
MACHINE = {"processor": "Chip", "cores": 2, "memory_mb": 100}
DEVICE = {"gpu": "PoCL", "mode": "real-time", "renderer": "llvmpipe"}
LIVE = {
    "machine": MACHINE,
    "device": DEVICE,
    "seconds": 10.0,
    "networks": {"EAST": {"model": "ppocr"}},
    "runs": {"a": {"power_w": 5.25}},
}


def test_a_figure_has_the_paper_the_simulation_and_the_live_run_side_by_side():
    text = page([FIGURE], SIMULATED, LIVE, SWEEP, "images/sweep.svg")
    assert "## Fig. 0: of nothing (section 1)" in text
    assert "| speed, fps |    12 |     11.50 |    – |" in text
    assert "| drawn      | chart |         – | 5.25 |" in text
    assert "It differs." in text
    assert "Not live: there is none." in text


def test_the_page_says_what_it_ran_on():
    text = page([], SIMULATED, LIVE, SWEEP, "images/sweep.svg")
    assert "Chip, 2 cores, 100 MB" in text
    assert "real-time" in text
    assert "ppocr for EAST" in text
    assert "![Frame rate and latency against the number of DNNs](images/sweep.svg)" in text


def test_without_a_live_run_the_page_says_how_to_make_one():
    assert "--live" in page([FIGURE], SIMULATED, None, SWEEP, "images/sweep.svg").split("##")[0]


def test_the_sweep_says_how_many_dnns_leave_the_frame_rate_alone():
    text = page([], SIMULATED, None, SWEEP, "images/sweep.svg")
    held = next(line.split() for line in text.splitlines() if line.startswith("| max-total"))
    assert held[3::2] == ["1"] * 6


def test_what_cannot_be_simulated_has_a_reason(results):
    for figure in read_values():
        missing = [
            row.what
            for row in figure.rows
            if look_up(results, row.at) is None and not row.at.startswith("accuracy/")
        ]
        assert not missing or figure.not_simulated, (figure.name, missing)


def test_what_cannot_run_live_has_a_reason():
    simulated_only = {run.name for run in all_runs() if not run.live}
    for figure in read_values():
        for row in figure.rows:
            path = (row.live_at or row.at).split("/")
            cannot = path == ["-"] or path[1] in {*simulated_only, "ArcFace"}
            assert not cannot or figure.not_here, (figure.name, row.what)
