"""What the README shows is true: its app loads, and it names every command."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import heimdall
from heimdall.app import load_app, validate
from heimdall.cli import main
from heimdall.runtime.telemetry.summary import DnnSummary

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_app_in_the_readme_loads_and_is_valid(tmp_path):
    code, _ = CODE
    (tmp_path / "mine.py").write_text(code)
    app = load_app(str(tmp_path / "mine.py"))
    validate(app)
    shopping = app()
    assert [dnn.name for dnn in shopping.dnns] == ["detect", "style"]
    assert len(code.splitlines()) <= 35


def test_the_session_in_the_readme_uses_what_there_is():
    _, code = CODE
    compile(code, "README.md", "exec")
    used = set(re.findall(r"\bsession\.(\w+)", README))
    assert {"push", "step", "picture", "latest"} <= used
    assert used <= set(dir(heimdall.Session))


def test_every_path_in_the_readme_exists():
    paths = re.findall(
        r"`((?:heimdall|apps|profiles|benchmarks)/[\w/.-]*)`|\]\(([\w/.-]+)\)", README
    )
    assert len(paths) > 15
    for path in (code or link for code, link in paths):
        assert (ROOT / path).exists(), path


def test_every_figure_of_a_run_is_in_the_readme():
    table = README.partition("## Reading the figures")[2].partition("\n## ")[0]
    for kind in (heimdall.RunSummary, DnnSummary):
        for each in fields(kind):
            assert f"`{each.name}`" in table, each.name


def test_every_command_is_in_the_readme():
    for command in main.commands:
        assert f"`heimdall {command}" in README


def test_every_option_the_readme_names_exists():
    params = [param for command in main.commands.values() for param in command.params]
    known = {name for param in params for name in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]*", README)) <= known | {"--help"}
