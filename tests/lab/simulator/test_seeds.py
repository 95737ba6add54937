"""Many seeds are the runs of each, and what they say together."""

from __future__ import annotations

import json
import re

import pytest

from heimdall.errors import ArgumentError, ConfigError
from heimdall.lab.simulator.seeds import simulate_seeds
from heimdall.lab.simulator.simulate import simulate
from heimdall.runtime.telemetry.statistics import over_runs


def timeless(summary):
    return {name: summary[name] for name in summary if name not in ("wall_s", "times_real_time")}


@pytest.mark.parametrize("workers", [1, 2])
def test_each_run_is_that_of_its_seed(workers):
    result = simulate_seeds(
        "shopping", "lg-v50", "max-total", seeds=3, seed=5, workers=workers, seconds=1.0
    )
    assert result["seeds"] == [5, 6, 7]
    for seed, run in zip(result["seeds"], result["runs"], strict=True):
        alone = simulate("shopping", "lg-v50", "max-total", seed=seed, seconds=1.0)
        assert timeless(run) == timeless(alone)
    assert result["over_runs"] == over_runs(result["runs"])
    assert result["over_runs"]["dnns"]["hand"]["latency_ms"]["mean"]["n"] == 3


def test_variations_hold_in_every_process():
    slow = {"turn_ms": 50}
    result = simulate_seeds(
        "shopping", "lg-v50", "multithread", seeds=2, workers=2, variations=slow, seconds=1.0
    )
    alone = simulate("shopping", "lg-v50", "multithread", seed=1, variations=slow, seconds=1.0)
    assert timeless(result["runs"][1]) == timeless(alone)
    assert result["variations"] == slow


@pytest.mark.parametrize("seeds", [0, -1, 1.5, True, 100_000])
def test_impossible_numbers_of_seeds_are_refused(seeds):
    with pytest.raises(ArgumentError, match="whole number"):
        simulate_seeds("shopping", "lg-v50", "max-total", seeds=seeds)


def test_what_makes_no_sense_is_said_before_processes_are_begun(monkeypatch):
    monkeypatch.setattr("heimdall.lab.simulator.seeds.results", None)
    with pytest.raises(ConfigError, match="unknown system"):
        simulate_seeds("shopping", "lg-v50", "magic", seeds=2)


# --- the command --------------------------------------------------------------------------


def test_the_command_prints_all_runs_and_what_they_say_together(run_command):
    given = ("shopping", "--seeds", "2", "--seconds", "1", "--workers", "1", "--json")
    status, output = run_command(*given, "--vary", "gpu_noise=0.1", "--vary", "turn_ms=20")
    assert status == 0
    result = json.loads(output.out)
    assert (result["schema"], result["simulated"], result["seeds"]) == (1, True, [0, 1])
    assert result["variations"] == {"gpu_noise": 0.1, "turn_ms": 20}
    assert [run["seed"] for run in result["runs"]] == [0, 1]
    assert result["over_runs"]["fps"]["mean"]["n"] == 2


def test_the_command_prints_means_with_their_intervals(run_command):
    given = ("shopping", "--seeds", "2", "--seconds", "1", "--workers", "1")
    status, output = run_command(*given)
    assert status == 0
    (row,) = [line.split() for line in output.out.splitlines() if line.startswith("hand")]
    assert row[2:5] == ["±" + row[2][1:], "of", "2"]
    assert re.search(r"30\.\d\d ±0\.\d\d fps of 30|29\.9\d ±\d\.\d\d fps of 30", output.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shopping", "--seeds", "0"), "--seeds"),
        (("shopping", "--seeds", "2", "--trace", "x.json"), "leave out --seeds"),
        (("shopping", "--seeds", "2", "--workers", "none"), "dask://HOST:PORT"),
        (("shopping", "--workers", "2"), "is for --seeds and --sweep"),
        (("shopping", "--output", "x"), "is for --sweep"),
        (("shopping", "--vary", "turn_ms"), "expected NAME=VALUE"),
        (("shopping", "--vary", "turn=3"), "unknown variation 'turn'"),
        (("shopping", "--vary", "turn_ms=0"), "must be above 0"),
        ((), "Missing argument 'SCENARIO' (or --sweep FILE)"),
        (("--sweep", "x.toml", "--seed", "3"), "--seed stands in the file of --sweep"),
        (("shopping", "--sweep", "x.toml"), "SCENARIO stands in the file of --sweep"),
    ],
)
def test_impossible_command_lines_are_refused(run_command, arguments, message):
    status, output = run_command(*arguments)
    assert status == 2
    assert message in output.err
