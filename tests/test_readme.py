"""What the README shows is true: its app loads, and it names every command."""

from __future__ import annotations

import re
from pathlib import Path

from heimdall.app import load_app, validate
from heimdall.cli import main

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_app_in_the_readme_loads_and_is_valid(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "mine.py").write_text(code)
    app = load_app(str(tmp_path / "mine.py"))
    validate(app)
    shopping = app()
    assert [dnn.name for dnn in shopping.dnns] == ["detect", "style"]
    assert len(code.splitlines()) <= 35


def test_every_command_is_in_the_readme():
    for command in main.commands:
        assert f"`heimdall {command}" in README


def test_every_option_the_readme_names_exists():
    params = [param for command in main.commands.values() for param in command.params]
    known = {name for param in params for name in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]*", README)) <= known | {"--help"}
