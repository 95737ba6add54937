"""A new app runs as it is written, and nothing is ever replaced."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from heimdall.app import load_app, validate
from heimdall.cli import main
from heimdall.cli.scaffold import new_app
from heimdall.errors import ConfigError


def test_the_app_loads_and_says_what_it_does(tmp_path):
    app, _ = new_app("my-first_app", tmp_path)
    assert app.name == "my_first_app.py"
    loaded = load_app(str(app))
    validate(loaded)
    assert loaded.__name__ == "MyFirstApp"
    assert loaded.title == "My first app"
    assert set(loaded.keys) == {"s", "b"}


@pytest.mark.slow
def test_its_own_test_passes(tmp_path):
    """Its networks are those of the shopping app, whose tests have compiled and profiled them."""
    _, test = new_app("mine", tmp_path)
    functions = runpy.run_path(str(test))
    functions["test_it_runs_and_its_networks_give_results"]()


def test_what_is_written_is_tidy(tmp_path):
    files = [str(path) for path in new_app("mine", tmp_path)]
    for arguments in (
        ["check", "--select", "E,F,W,I,B,UP", "--line-length", "100"],
        ["format", "--check", "--line-length", "100"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "--isolated", *files],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["", "1st", "a/b", "../up", "class", "naïve", "mine!", "-"])
def test_a_name_that_cannot_be_one_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="cannot name an app"):
        new_app(name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["shopping", "heimdall"])
def test_names_of_heimdalls_own_are_taken(tmp_path, name):
    with pytest.raises(ConfigError, match="Heimdall's own"):
        new_app(name, tmp_path)


@pytest.mark.parametrize("there", ["mine.py", "test_mine.py"])
def test_a_file_that_exists_is_never_replaced(tmp_path, there):
    (tmp_path / there).write_text("dear")
    with pytest.raises(ConfigError, match="exists already"):
        new_app("mine", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "dear"


def test_the_command_says_what_to_do_next(tmp_path):
    result = CliRunner().invoke(main, ["new", "mine", "--folder", str(tmp_path / "there")])
    assert result.exit_code == 0
    assert f"heimdall run {tmp_path / 'there' / 'mine.py'}" in result.stdout
    again = CliRunner().invoke(main, ["new", "mine", "--folder", str(tmp_path / "there")])
    assert (again.exit_code, again.stdout) == (2, "")
    assert "exists already" in again.stderr


def test_the_command_speaks_json(tmp_path):
    result = CliRunner().invoke(main, ["new", "mine", "--folder", str(tmp_path), "--json"])
    found = json.loads(result.stdout)
    assert Path(found["app"]).is_file()
    assert Path(found["test"]).is_file()
