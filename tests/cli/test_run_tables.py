"""Runs as people read them: the figures that matter are there, and what is missing is a dash."""

from __future__ import annotations

from typing import Any

from heimdall.cli import cells as made
from heimdall.cli import run_tables, tables
from heimdall.lab.cli import run_tables as lab_tables
from heimdall.lab.simulator.seeds import simulate_seeds
from heimdall.lab.simulator.side_by_side import compare_simulated
from heimdall.lab.simulator.simulate import simulate
from heimdall.runtime.telemetry.figures import Figures
from heimdall.runtime.telemetry.jobs import ModelFigures, Outcome
from heimdall.runtime.telemetry.statistics import over_runs
from heimdall.vocabulary.processors import GPU
from tests.cli.printed import cells

MS = 1_000_000


def summary(frames: int = 40, **more: Any) -> dict[str, Any]:
    """A run of an app, counted as runs are."""
    eye = ModelFigures(required_hz=3.0)
    figures = Figures(20, {"eye": eye}, simulated=True)
    eye.latencies_ns.extend([10 * MS, 30 * MS])
    eye.gpu, eye.cpu, eye.deadline_misses = 1, 1, 1
    eye.chunks = 3
    for frame in range(frames):
        now_ns = frame * 50 * MS
        figures.frame(now_ns, now_ns, now_ns, 5 * MS)
    figures.ran(GPU, 100 * MS)
    return {
        "app": "mine",
        "source": "video cup.mp4",
        "scheduler": "max-total",
        "mode": "static",
        "device": {"gpu": "a GPU", "mode": "real-time on core 1"},
        "errors": [],
        **figures.summary(5 * MS, 0.93, now_ns=2000 * MS),
        "memory_mb": {"at_10s": None, "peak": 321.0, "end": 300.0},
        **more,
    }


def test_a_summary_says_how_fast_the_frames_came_and_what_each_dnn_did(shown):
    lines = shown(run_tables.run_summary(summary()))
    text = "\n".join(lines)
    assert "mine on video cup.mp4" in text
    assert "a GPU (real-time on core 1)" in text
    assert "max-total, static" in text
    assert "40 in 2.0 s: 20.00 fps of 20" in text
    assert "50.00 ms p50" in text
    assert "93% used" in text
    assert "321 MB at most" in text
    row = ["eye", "2", "1.00", "of", "3", "20.0", "29.8", "-", "1", "1", "3.0", "0", "1", "50%"]
    assert cells(lines, "eye") == row
    assert "error" not in text


def test_of_a_run_without_frames_there_are_dashes_and_its_errors(shown):
    undecided = {"p50": None, "p99": None}
    errors = ["eye: decode failed"]
    bare = summary(frames=0, gap_utilization=None, decision_us=undecided, errors=errors)
    lines = shown(run_tables.run_summary(bare))
    assert "- fps of 20" in "\n".join(lines)
    assert not any(line.startswith(("gaps", "decisions")) for line in lines)
    assert lines[-1] == "error: eye: decode failed"


def test_a_simulation_has_its_speed_and_no_memory(shown):
    lines = shown(run_tables.run_summary(summary(simulated=True, times_real_time=412.3)))
    assert "412 times faster than real time" in " ".join(cells(lines, "simulated"))
    assert not any(line.startswith("memory") for line in lines)


def test_systems_stand_side_by_side_and_failures_below(shown):
    other = summary()
    other["dnns"]["eye"]["latency_ms"]["mean"] = 55.5
    result = {
        "title": "Shopping",
        "machine": {"processor": "a CPU", "cores": 2},
        "systems": {"heimdall": summary(), "uncoordinated": other},
        "failures": ["greedy: ended with status 3"],
    }
    lines = shown(lab_tables.compared(result))
    assert lines[0] == "Shopping on a CPU, 2 cores; a GPU, real-time on core 1"
    (row,) = [line.split() for line in lines if line.startswith("eye mean")]
    assert row == ["eye", "mean", "ms", "20.0", "55.5"]
    # 5 ms for each of 40 frames were useful, and no inference; 100 ms of chunks were not
    assert cells(lines, "heimdall")[-1] == "33.3%"
    assert lines[-1] == "failed: greedy: ended with status 3"


def test_the_input_sizes_that_were_found_are_told_once(shown):
    load = {"size": [512, 928], "alone_ms": 93.19, "fallback_ms": 0.0, "wanted_ms": 95.0}
    one = {**summary(), "loads": {"eye": load}}
    machine = {"processor": "a CPU", "cores": 2}
    result = {"title": "Shopping", "machine": machine, "failures": []}
    lines = shown(lab_tables.compared({**result, "systems": {"a": one, "b": one}}))
    found = [line for line in lines if "alone" in line]
    assert found == ["eye: 93.2 ms alone at 512x928 (95 were asked for)"]


def test_an_app_with_requests_beside_it_has_tables_of_both(shown):
    asked = ModelFigures(whole_ns=10 * MS)
    asked.ended(Outcome("kind", 0, 30 * MS, slo_ns=40 * MS))
    both = {**summary(), "requests": {"kind": asked.of_requests()}}
    lines = shown(run_tables.run_summary(both))
    assert cells(lines, "eye")[:2] == ["eye", "2"]
    assert cells(lines, "kind")[:4] == ["kind", "10.0", "1", "0"]
    result = {"title": "Both", "systems": {"a": both}, "failures": []}
    side_by_side = "\n".join(shown(lab_tables.compared(result)))
    assert "eye p99 ms" in side_by_side
    assert "kind over SLO %" in side_by_side
    assert "answered a second" in side_by_side


def test_power_is_a_column_where_it_could_be_read(shown):
    result: dict[str, Any] = {
        "title": "Shopping",
        "machine": {"processor": "a CPU", "cores": 2},
        "systems": {"heimdall": {**summary(), "power_w": 12.345}, "other": summary()},
        "failures": [],
    }
    lines = shown(lab_tables.compared(result))
    assert cells(lines, "heimdall")[-1] == "12.3"
    assert cells(lines, "other")[-1] == "-"
    del result["systems"]["heimdall"]["power_w"]
    assert "power" not in "".join(shown(lab_tables.compared(result)))


def test_where_every_system_failed_there_is_no_table(shown):
    result = {
        "title": "Shopping",
        "machine": {"processor": "a CPU", "cores": 2},
        "systems": {},
        "failures": ["all: no GPU"],
    }
    assert shown(lab_tables.compared(result)) == [
        "Shopping on a CPU, 2 cores", "", "failed: all: no GPU"
    ]  # fmt: skip


def test_a_run_has_a_line_a_model_and_one_for_all(shown):
    run = simulate("split-1", None, "fcfs", seconds=20)
    lines = shown(run_tables.run_summary(run))
    vgg = run["requests"]["VGG19"]
    assert cells(lines, "VGG19")[1:4] == ["67.5", str(vgg["submitted"]), "0"]
    assert f"{100 * run['violations']['4']:.1f}" in cells(lines, "all")
    assert f"gpu {100 * run['processors']['gpu']['busy']:.0f}%" in " ".join(lines)


def test_seeds_have_intervals(shown):
    found = simulate_seeds("split-1", None, "fcfs", seeds=2, seconds=5, workers=1)
    lines = shown(lab_tables.seeds_report(found))
    assert any("±" in line for line in lines)
    assert "2, seeds 0 to 1: means, and half the 95% interval of each" in " ".join(lines)


def test_systems_stand_side_by_side(shown):
    found = compare_simulated("split-1", None, "fcfs,prema", seconds=10)
    lines = shown(lab_tables.compared(found))
    assert cells(lines, "model") == ["model", "fcfs", "prema"]
    assert any(line.startswith("GPT-2 jitter ms") for line in lines)


def test_early_exits_are_shown_where_there_are_any(shown):
    found = compare_simulated("pantheon-uav", None, "edf-exits,rms", seconds=3)
    lines = shown(lab_tables.compared(found))
    assert any(line.startswith("scene exits") and "exit1" in line for line in lines)
    assert "accuracy %" in " ".join(lines)
    alone = shown(run_tables.run_summary(simulate("pantheon-uav", None, "rms", seconds=2)))
    assert any(line.startswith("scene") and "whole " in line for line in alone)
    plain = shown(run_tables.run_summary(simulate("split-1", None, "fcfs", seconds=5)))
    assert "accuracy" not in " ".join(plain)


def test_apps_stand_side_by_side(shown):
    found = compare_simulated("shopping", None, "max-total,max-min", seconds=2)
    lines = shown(lab_tables.compared(found))
    assert cells(lines, "DNN") == ["DNN", "max-total", "max-min"]
    assert any(line.startswith("style utility") for line in lines)


def test_a_comparison_in_which_nothing_could_run_says_why(shown):
    nothing = {"title": "T", "systems": {}, "over_runs": {}, "failures": ["fcfs: no GPU"]}
    assert shown(lab_tables.compared(nothing)) == ["T", "", "failed: fcfs: no GPU"]


def run(fps: float, mean_ms: float | None, miss_rate: float | None = 0.25):
    latency = {"mean": mean_ms, "p99": mean_ms, "max": mean_ms}
    return {
        "fps": {"mean": fps, "min": fps - 2, "max": fps},
        "fps_target": 30,
        "frame_interval_ms": {"p50": 33.3, "p99": 34.0},
        "late_rate": 0.015,
        "gap_utilization": None,
        "seconds": 60.0,
        "gpu": {"busy_ms": 100.0, "useful_ms": 90.0},
        "device": {"gpu": "a GPU", "mode": "real-time"},
        "errors": [],
        "dnns": {
            "eye": {
                "achieved_hz": 2.5,
                "required_hz": 2.0,
                "latency_ms": latency,
                "miss_rate": miss_rate,
                "gpu": 5,
                "cpu": 0,
            }
        },
    }


def test_a_mean_stands_with_half_its_interval():
    found = over_runs([{"a": 10.0}, {"a": 12.0}])["a"]
    assert made.mean(found) == "11.0 ±12.7"
    assert made.mean(found, 0, 10) == "110 ±127"
    assert made.mean(over_runs([{"a": 10.0}])["a"]) == "10.0"
    assert made.mean(None) == "-"


def test_systems_run_several_times_stand_with_their_intervals(capsys):
    runs = {"a": [run(30, 100), run(29, 110)], "b": [run(12, 900)]}
    result = {
        "title": "Shopping",
        "machine": {"processor": "a CPU", "cores": 2},
        "systems": {name: each[0] for name, each in runs.items()},
        "runs": runs,
        "over_runs": {name: over_runs(each) for name, each in runs.items()},
        "failures": [],
    }
    tables.show(*lab_tables.compared(result))
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("2 runs in turns") for line in lines)
    (frames,) = [line.split() for line in lines if line.startswith("a  ")]
    assert frames[:6] == ["a", "29.50", "±6.35", "27.0", "to", "30.0"]
    found = {" ".join(line.split()[:2]): line.split()[2:] for line in lines if "eye" in line}
    assert found["eye mean"] == ["ms", "105.0", "±63.5", "900.0"]
    assert found["eye missed"] == ["%", "25.0", "±0.0", "25.0"]
    assert found["eye a"] == ["second", "2.50", "±0.00", "of", "2", "2.50", "of", "2"]


def test_points_of_a_sweep_stand_below_each_other(capsys):
    def point(values, *runs):
        found = {"system": "max-total", "values": values, "seeds": list(range(len(runs)))}
        return {**found, "over_runs": over_runs(runs)}

    result = {
        "title": "Turns",
        "runs": 4,
        "done": 3,
        "seconds": 60.0,
        "seeds": [0, 1],
        "points": [
            point({"turn_ms": 10}, run(30, 100), run(30, 100)),
            point({"size": [640, 480]}, run(30, None, None)),
        ],
        "output": "out/turns.jsonl",
        "interrupted": True,
    }
    tables.show(*lab_tables.sweep_report(result))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Turns: 3 of 4 runs")
    first, second = (line.split() for line in lines if "max-total" in line)
    assert first == [
        "10",
        "-",
        "max-total",
        "30.00",
        "±0.00",
        "1.50",
        "±0.00",
        "100.0",
        "±0.0",
        "25.0",
        "±0.0",
        "2.50",
        "±0.00",
    ]
    assert second == ["-", "640x480", "max-total", "30.00", "1.50", "-", "-", "2.50"]
    assert lines[-1].startswith("interrupted")


def test_a_policy_that_hardly_decided_is_named(shown):
    reasons = {"its deadline is at risk": 75, "no other job fits the gap": 22, "utility": 3}
    run = summary(chosen={"chunks": 100, "by_policy": 0.03, "reasons": reasons})
    said = "max-total preferred 3.0% of 100 chunks to others: its deadline is at risk 75%"
    assert said not in " ".join(" ".join(shown(run_tables.run_summary(run))).split())  # one DNN
    run["dnns"]["ear"] = run["dnns"]["eye"]
    assert said in " ".join(" ".join(shown(run_tables.run_summary(run))).split())
    result = {"title": "mine", "systems": {"max-total": run}, "failures": []}
    assert said in " ".join(" ".join(shown(lab_tables.compared(result))).split())
    run["chosen"]["by_policy"] = 0.4
    assert "preferred" not in "\n".join(shown(run_tables.run_summary(run)))
