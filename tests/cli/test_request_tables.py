"""Figures of requests as people read them."""

from __future__ import annotations

from heimdall.cli import request_tables
from heimdall.simulator.seeds import simulate_seeds
from heimdall.simulator.side_by_side import compare_simulated
from heimdall.simulator.simulate import simulate
from tests.cli.printed import cells


def test_a_run_has_a_line_a_model_and_one_for_all(shown):
    run = simulate("split-1", None, "fcfs", seconds=20)
    lines = shown(request_tables.request_summary(run))
    vgg = run["requests"]["VGG19"]
    assert cells(lines, "VGG19")[1:4] == ["67.5", str(vgg["submitted"]), "0"]
    assert f"{100 * run['violations']['4']:.1f}" in cells(lines, "all")
    assert f"gpu {100 * run['processors']['gpu']['busy']:.0f}%" in " ".join(lines)


def test_seeds_have_intervals(shown):
    found = simulate_seeds("split-1", None, "fcfs", seeds=2, seconds=5, workers=1)
    lines = shown(request_tables.seeds_of_requests(found))
    assert any("±" in line for line in lines)
    assert "2: means, and half the 95% interval of each" in " ".join(lines)


def test_systems_stand_side_by_side(shown):
    found = compare_simulated("split-1", None, "fcfs,prema", seconds=10)
    lines = shown(request_tables.compared(found))
    assert cells(lines, "model") == ["model", "fcfs", "prema"]
    assert any(line.startswith("GPT-2 jitter ms") for line in lines)


def test_early_exits_are_shown_where_there_are_any(shown):
    found = compare_simulated("pantheon-uav", None, "edf-exits,rms", seconds=3)
    lines = shown(request_tables.compared(found))
    assert any(line.startswith("scene exits") and "exit1" in line for line in lines)
    assert "accuracy %" in " ".join(lines)
    alone = shown(request_tables.request_summary(simulate("pantheon-uav", None, "rms", seconds=2)))
    assert any(line.startswith("scene") and "whole " in line for line in alone)
    plain = shown(request_tables.request_summary(simulate("split-1", None, "fcfs", seconds=5)))
    assert "accuracy" not in " ".join(plain)


def test_apps_stand_side_by_side(shown):
    found = compare_simulated("shopping", None, "max-total,max-min", seconds=2)
    lines = shown(request_tables.compared(found))
    assert cells(lines, "DNN") == ["DNN", "max-total", "max-min"]
    assert any(line.startswith("style utility") for line in lines)


def test_a_comparison_in_which_nothing_could_run_says_why(shown):
    nothing = {"title": "T", "over_runs": {}, "failures": ["fcfs: no GPU"]}
    assert shown(request_tables.compared(nothing)) == ["failed: fcfs: no GPU"]
