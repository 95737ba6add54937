from __future__ import annotations

from benchmarks.devices_page import text
from heimdall.lab.simulator.devices import MACHINES

ROW = """
schema = 1
title = "A board"
[machine]
cpu = "C"
cores = 4
gpu = "G"
mode = "hardware"
driver = "D 1"
renderer = "R"
os = "O"
python = "3.12"
onnxruntime = "1.30"
heimdall = "0.1.0"
date = "2026-01-02"
warm_up_s = 70.0
measured_s = 180.0
[engine]
cores = 4
geometric_mean = { onnxruntime = 1.5, cuda = 0.5 }
[engine.networks.net]
ms = 2.0
spread = 0.01
onnxruntime_ms = 3.0
onnxruntime_spread = 0.02
onnxruntime_ratio = 1.5
[chunks]
not_measured = "the driver hangs"
[preemption]
gpu_free_ms = { p50 = 1.0, p99 = 2.0, max = 3.0 }
[scenarios."shopping 30 fps 720p"]
fps_mean = 30.0
fps_min = 29.5
interval_p99_ms = 34.0
late_share = 0.01
decision_p99_us = 90.0
dnns.hand = { inferences = 9, mean_ms = 20.0, p50_ms = 19.0, p99_ms = 30.0, worst_ms = 31.0 }
[scenarios."shopping 60 fps 1080p"]
not_measured = "no GL"
[energy]
not_measured = "not readable"
"""


def test_what_was_measured_and_what_was_not_stand_in_the_table(tmp_path):
    (tmp_path / "board.toml").write_text(ROW)
    (tmp_path / "a-missing.toml").write_text('title = "Other"\nnot_measured = "none at hand"\n')
    page = text(sorted(tmp_path.glob("*.toml")))
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    board = next(line for line in rows if line.startswith("| A board"))
    cells = [cell.strip() for cell in board.strip("|").split("|")]
    assert cells[1:6] == ["1.50", "not measured", "not measured", "1.0, 2.0", "30.00, 34.0"]
    assert cells[6] == "not measured"  # 60 fps, which this row lacks
    assert page.index("A board") < page.index("Other: not measured, none at hand")
    assert "hand 20, 30, 31" in page
    assert "not measured: no GL" in page
    assert "Power: not readable" in page


def test_the_rows_that_are_kept_make_a_page():
    page = text(sorted(MACHINES.glob("*.toml")))
    assert page.count("not measured, no machine with one could be had") == 1
    assert "simulated" in page
