"""What many runs say together, for people."""

from __future__ import annotations

from heimdall.bench.statistics import over_runs
from heimdall.cli import cells, many_runs, tables


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
    assert cells.mean(found) == "11.0 ±12.7"
    assert cells.mean(found, 0, 10) == "110 ±127"
    assert cells.mean(over_runs([{"a": 10.0}])["a"]) == "10.0"
    assert cells.mean(None) == "-"


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
    tables.show(*tables.bench_report(result))
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("2 runs in turns") for line in lines)
    (frames,) = [line.split() for line in lines if line.startswith("a  ")]
    assert frames[:6] == ["a", "29.50", "±6.35", "27.0", "to", "30.0"]
    found = {" ".join(line.split()[:2]): line.split()[2:] for line in lines if "eye" in line}
    assert found["eye mean"] == ["105.0", "±63.5", "900.0"]
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
    tables.show(*many_runs.sweep_report(result))
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
