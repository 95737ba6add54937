"""A policy in a file: found by ``path/to/file.py[:Class]`` wherever a name is accepted."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from heimdall.app import RunOptions
from heimdall.cli import main
from heimdall.errors import AppError, ConfigError
from heimdall.lab.bench.systems import parse_systems
from heimdall.lab.simulator.seeds import simulate_seeds
from heimdall.lab.simulator.side_by_side import compare_simulated
from heimdall.schedulers import create, name_of

OLDEST = """
from heimdall import Greedy


class Oldest(Greedy):
    name = "oldest"
    reason = "oldest"

    def prefer(self, view, now_ns, jobs):
        return min(jobs, key=lambda job: job.arrival_ns)
"""


@pytest.fixture(autouse=True)
def oldest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "oldest.py"
    path.write_text(OLDEST)
    return path


@pytest.mark.parametrize("named", ["oldest.py", "oldest.py:Oldest", "./oldest.py"])
def test_it_is_called_by_its_own_name(named):
    assert name_of(RunOptions(scheduler=named).scheduler) == "oldest"
    assert create(named).name == "oldest"


def test_a_changed_file_is_read_again(oldest):
    create("oldest.py")
    oldest.write_text(OLDEST.replace('name = "oldest"', 'name = "other"'))
    os.utime(oldest, ns=(0, 0))
    assert create("oldest.py").name == "other"


def test_mistakes_are_named(oldest):
    with pytest.raises(AppError, match=r"scheduler file none\.py does not exist"):
        RunOptions(scheduler="none.py")
    with pytest.raises(AppError, match=r"unknown scheduler class 'Oldst' \(did you mean 'Oldest'"):
        RunOptions(scheduler="oldest.py:Oldst")
    oldest.write_text("")
    os.utime(oldest, ns=(1, 1))
    with pytest.raises(AppError, match="must define one Scheduler subclass"):
        RunOptions(scheduler="oldest.py")
    oldest.write_text(OLDEST.replace('"oldest"', '"fcfs"'))
    os.utime(oldest, ns=(2, 2))
    with pytest.raises(ConfigError, match="is called 'fcfs', as another; rename it"):
        RunOptions(scheduler="oldest.py")


def test_systems_are_made_of_it_and_found_again_from_any_folder(oldest, tmp_path, monkeypatch):
    found = parse_systems("max-total,oldest.py,oldest.py:Oldest-static-nooffload-replace")
    assert [each.name for each in found] == [
        "max-total",
        "oldest",
        "oldest-static-nooffload-replace",
    ]
    assert found[2].mode == "static"
    assert not found[2].offload
    assert found[2].admission == "replace"
    monkeypatch.chdir("/")
    assert parse_systems(",".join(each.typed for each in found)) == found


def test_simulations_side_by_side_have_it():
    result = compare_simulated("shopping-phone", None, "max-total,oldest.py", seconds=1)
    assert set(result["systems"]) == {"max-total", "oldest"}
    assert result["systems"]["oldest"]["scheduler"] == "oldest"


@pytest.mark.parametrize("named", [("--systems", "max-total,oldest.py"), ("--system", "oldest.py")])
def test_a_simulations_page_has_it_with_its_utilities(named, tmp_path):
    asked = ("shopping-phone", *named, "--seconds", "1", "--report", "page.html")
    result = CliRunner().invoke(main, ["simulate", *asked])
    assert result.exit_code == 0, result.output
    assert "oldest" in result.stdout
    assert "cannot be replayed" not in result.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Utility and occupancy: oldest" in page


def test_a_page_that_fails_loses_no_figures(monkeypatch):
    def fail(*arguments):
        raise ConfigError("no page today")

    monkeypatch.setattr("heimdall.lab.bench.report.write_report", fail)
    asked = ("simulate", "shopping-phone", "--seconds", "1", "--report", "page.html")
    for more in ((), ("--systems", "max-total,oldest.py"), ("--json",)):
        result = CliRunner().invoke(main, [*asked, *more])
        assert result.exit_code == 2
        assert "no page today" in result.stderr
        assert "fps" in result.stdout


def test_the_comparison_of_live_runs_shows_figures_before_its_page(monkeypatch):
    def fail(*arguments):
        raise ConfigError("no page today")

    compared = compare_simulated("shopping-phone", None, "max-total,oldest.py", seconds=1)
    monkeypatch.setattr("heimdall.lab.bench.runner.compare", lambda *a, **b: compared)
    monkeypatch.setattr("heimdall.lab.bench.report.write_report", fail)
    asked = ("bench", "shopping-phone", "--systems", "max-total,oldest.py", "--report", "p.html")
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 2
    assert "no page today" in result.stderr
    assert "fps" in result.stdout


def test_a_recorded_run_is_replayed_with_it(tmp_path):
    simulated = ("simulate", "shopping-phone", "--system", "oldest.py", "--seconds", "1")
    assert CliRunner().invoke(main, [*simulated, "--trace", "run.json"]).exit_code == 0
    result = CliRunner().invoke(main, ["trace", "run.json"])
    assert result.exit_code == 2
    assert "unknown scheduler 'oldest'" in result.stderr
    assert "--scheduler path/to/file.py" in result.stderr
    again = CliRunner().invoke(main, ["trace", "run.json", "--scheduler", "oldest.py", "--json"])
    assert again.exit_code == 0, again.output
    found = json.loads(again.stdout)
    assert found["steps"] > 10
    assert found["differences"] == []
    other = CliRunner().invoke(main, ["trace", "run.json", "--scheduler", "max-min"])
    assert other.exit_code == 2
    assert "recorded was scheduler 'oldest'" in other.stderr


def test_one_that_never_decides_the_same_has_a_page_without_utilities(oldest, tmp_path, caplog):
    oldest.write_text(OLDEST.replace("min(jobs", "random.choice(jobs) or min(jobs").replace(
        "from heimdall import", "import random\n\nfrom heimdall import"
    ))  # fmt: skip
    os.utime(oldest, ns=(3, 3))
    asked = ("shopping-phone", "--system", "oldest.py", "--seconds", "1", "--report", "page.html")
    result = CliRunner().invoke(main, ["simulate", *asked])
    assert result.exit_code == 0, result.output
    assert "cannot be replayed" in result.stderr
    assert "Timeline" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_other_processes_find_it():
    result = simulate_seeds(
        "shopping-phone", None, "oldest.py:Oldest", seconds=1, seeds=2, workers=2
    )
    assert result["system"] == "oldest"
