"""What an extra brings, and what is said where it is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

import heimdall
from heimdall.cli import main
from heimdall.errors import ConfigError
from heimdall.system.extras import line, need


def test_what_is_there_is_not_complained_of():
    need("numpy", "lab", "a chart")


def test_what_is_missing_is_one_line_to_type():
    with pytest.raises(
        ConfigError, match=r"a chart needs no_such_package: .*pip install 'heim.*lab"
    ):
        need("no_such_package", "lab", "a chart")


def test_no_other_place_says_how_to_install_an_extra():
    package = Path(heimdall.__file__).parent
    own = package / "system" / "extras.py"
    files = [path for path in package.rglob("*.py") if path != own]
    assert [path for path in files if "heimdall-ar[" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    "words",
    [
        ("bench", "shopping", "--report", "r.html"),
        ("simulate", "shopping", "--report", "r.html"),
        ("partition", "selfie", "--gap-ms", "9", "--png", "p.png"),
        ("train-top", "top-mixed"),
    ],
)
def test_charts_are_refused_before_the_work_begins(monkeypatch, tmp_path, words):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else real(name)
    )
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, [*words])
    assert result.exit_code == 2
    assert f"needs matplotlib: {line('lab')}" in result.stderr
    assert not list(tmp_path.iterdir())
