"""Sweeps: every point is run once, and what is finished is kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator import sweep as sweeps
from heimdall.lab.simulator.simulate import Experiment, simulate
from heimdall.lab.simulator.sweep import run_sweep
from heimdall.lab.simulator.watched import _luminance
from heimdall.runtime.telemetry.statistics import over_runs

TEXT = """
scenario = "shopping"
systems = ["max-total", "multithread"]
seeds = 2
seconds = 0.5
[vary]
turn_ms = [10, 40]
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "turns.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def runs(monkeypatch):
    """The seeds that are really run."""
    made = []

    def run(self, seed):
        made.append(seed)
        return original(self, seed)

    original = Experiment.run
    monkeypatch.setattr(Experiment, "run", run)
    return made


class Interrupted:
    """Ctrl-C after so many runs."""

    def __init__(self, after):
        self.after = after

    def __call__(self, what, done, total):
        if done == self.after:
            raise KeyboardInterrupt


def test_every_point_is_what_simulate_gives_over_its_seeds(path, tmp_path):
    result = run_sweep(path, output=tmp_path, workers=2)
    assert [(point["system"], point["values"]) for point in result["points"]] == [
        ("max-total", {"turn_ms": 10}),
        ("multithread", {"turn_ms": 10}),
        ("max-total", {"turn_ms": 40}),
        ("multithread", {"turn_ms": 40}),
    ]
    alone = [
        simulate(
            "shopping", "lg-v50", "multithread", seconds=0.5, seed=s, variations={"turn_ms": 40}
        )
        for s in (0, 1)
    ]
    last = result["points"][-1]
    assert last["seeds"] == [0, 1]
    for name in ("fps", "dnns", "late_rate"):
        assert last["over_runs"][name] == over_runs(alone)[name]
    assert (result["runs"], result["done"], result["interrupted"]) == (8, 8, False)


def test_finished_runs_are_not_made_again(path, tmp_path, runs):
    first = run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 8
    assert run_sweep(path, output=tmp_path, workers=1) == first
    assert len(runs) == 8
    path.write_text(TEXT.replace("seeds = 2", "seeds = 3"))
    assert run_sweep(path, output=tmp_path, workers=1)["done"] == 12
    assert sorted(runs[8:]) == [2] * 4


def test_an_interrupted_sweep_goes_on_where_it_ended(path, tmp_path, runs, caplog):
    first = run_sweep(path, output=tmp_path, workers=1, progress=Interrupted(after=3))
    assert (first["done"], first["interrupted"]) == (3, True)
    assert [point["seeds"] for point in first["points"]] == [[0, 1], [0]]
    assert "3 of 8 runs are kept" in caplog.text
    whole = run_sweep(path, output=tmp_path, workers=1)
    assert (whole["done"], whole["interrupted"]) == (8, False)
    assert len(runs) == 8


def test_half_a_line_is_cut_off_and_its_run_made_again(path, tmp_path, runs, caplog):
    whole = run_sweep(path, output=tmp_path, workers=1)
    results = tmp_path / "turns.jsonl"
    results.write_bytes(results.read_bytes()[:-100])
    again = run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 9
    assert "half a line" in caplog.text
    assert len(results.read_text().splitlines()) == 8
    assert again["done"] == whole["done"]


@pytest.mark.parametrize(
    ("before", "after"), [("seconds = 0.5", "seconds = 0.6"), ('"shopping"', '"emoji"')]
)
def test_runs_of_another_sweep_are_not_taken_for_this_ones(path, tmp_path, runs, before, after):
    run_sweep(path, output=tmp_path, workers=1)
    path.write_text(TEXT.replace(before, after))
    run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 16


@pytest.mark.parametrize(
    "changed",
    [
        "lab/simulator/coordinated.py",
        "lab/policies/shortest.py",
        "lab/bench/scenario.py",
        "coordinator/gap.py",
        "app/options.py",
        "models/luminance.py",
        "errors.py",
    ],
)
def test_runs_of_other_code_are_not_taken_for_this_codes(
    path, tmp_path, runs, monkeypatch, changed
):
    source, package = sweeps._PACKAGE, tmp_path / "heimdall"
    shutil.copytree(source, package, ignore=lambda folder, names: [*_others(folder, names)])
    monkeypatch.setattr(sweeps, "_PACKAGE", package)
    run_sweep(path, output=tmp_path, workers=1)
    run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 8
    with (package / changed).open("a") as code:
        code.write("# changed\n")
    sweeps._code.cache_clear()
    run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 16


def _others(folder, names):
    """What is no code."""
    for name in names:
        if not name.endswith(".py") and not (Path(folder) / name).is_dir():
            yield name


def test_the_policy_of_a_users_file_counts_and_what_it_imports(path, tmp_path, runs, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_helper.py").write_text("FIRST = 0\n")
    policy = tmp_path / "my_policy.py"
    policy.write_text(POLICY)
    path.write_text(TEXT.replace('"multithread"', f'"{policy}"'))
    run_sweep(path, output=tmp_path, workers=1)
    (tmp_path / "my_helper.py").write_text("FIRST = -1\n")
    run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 12
    policy.write_text(POLICY + "# changed\n")
    run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 16
    run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 16


POLICY = """
from my_helper import FIRST

from heimdall.schedulers import Assignment, Choice, Scheduler


class Mine(Scheduler):
    name = "mine"

    def select(self, view, now_ns):
        job = view.ready[FIRST]
        end_op = view.longest(job, view.idle[0])
        if end_op == job.next_op:
            return None
        return Choice((Assignment(job.id, end_op, view.idle[0]),), "first")
"""


def test_a_clip_that_was_replaced_counts(path, tmp_path, runs):
    path.write_text(TEXT.replace("turn_ms = [10, 40]", "turn_ms = [10]\nluminance = 'mine.avi'"))
    for steps in (3, 5):
        write_clip(tmp_path / "mine.avi", steps)
        _luminance.cache_clear()
        run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 8


def write_clip(path, steps):
    clip = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 30, (64, 64))
    for step in range(steps):
        clip.write(np.full((64, 64, 3), 20 * step, np.uint8))
    clip.release()


def test_points_that_are_the_same_machine_share_their_runs(path, tmp_path, runs):
    path.write_text(SAME)
    result = run_sweep(path, output=tmp_path, workers=1)
    assert len(runs) == 1
    assert [point["values"] for point in result["points"]] == [{"turn_ms": 29}, {"switch_ms": 0}]


SAME = """
scenario = "shopping"
seeds = 1
seconds = 0.5
[[vary]]
turn_ms = [29]
[[vary]]
switch_ms = [0]
"""


def test_an_impossible_point_is_said_before_anything_runs(path, tmp_path, runs):
    path.write_text(TEXT + "dnns.unknown.beta = [1]")
    with pytest.raises(ConfigError, match=r"sweep .*turns\.toml: .*unknown DNN 'unknown'"):
        run_sweep(path, output=tmp_path, workers=1)
    assert runs == []


def test_a_file_of_something_else_is_left_alone(path, tmp_path):
    mine = tmp_path / "diary.jsonl"
    mine.write_text("dear diary\n")
    with pytest.raises(ConfigError, match="line 1 is no result of a sweep"):
        run_sweep(path, output=mine, workers=1)
    assert mine.read_text() == "dear diary\n"


def test_results_that_cannot_be_written_are_refused(path):
    with pytest.raises(ConfigError, match="results"):
        run_sweep(path, output=path / "folder", workers=1)


# --- the command --------------------------------------------------------------------------


def test_the_command_prints_a_line_a_point(path, tmp_path, run_command):
    given = (str(path), "--output", str(tmp_path), "--workers", "1")
    status, output = run_command("--sweep", *given)
    assert status == 0
    lines = output.out.splitlines()
    assert "8 of 8 runs" in lines[0]
    assert [line.split()[:2] for line in lines if "multithread" in line] == [
        ["10", "multithread"], ["40", "multithread"]
    ]  # fmt: skip
    status, output = run_command("--sweep", *given, "--json")
    assert json.loads(output.out)["done"] == 8


def test_an_interrupted_command_shows_what_there_is(path, tmp_path, run_command, monkeypatch):
    def interrupt(*call):
        raise KeyboardInterrupt

    monkeypatch.setattr(Experiment, "run", interrupt)
    status, output = run_command("--sweep", str(path), "--output", str(tmp_path), "--workers", "1")
    assert status not in (0, 2)
    assert "goes on where it ended" in output.out


def test_bad_input_ends_the_command_with_one_line(tmp_path, run_command):
    status, output = run_command("--sweep", str(tmp_path / "nothing.toml"))
    assert status == 2
    assert output.err.startswith("error: sweep")
