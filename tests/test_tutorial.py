"""The tutorial works as it stands: every file is written and every command is run, in order."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from heimdall.cli import COMMANDS, main

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "learn" / "first-app.md").read_text(
    encoding="utf-8"
)
BLOCKS = re.findall(r"```(python|sh)\n(.*?)```", PAGE, re.DOTALL)
QUICK = ["--headless", "--frames", "8", "--size", "320x240", "--json"]


def write(code: str) -> None:
    name = re.match(r"# (\w+\.py)\n", code)
    assert name, f"a file without a name in its first line:\n{code}"
    Path(name[1]).write_text(code)


def execute(line: str) -> None:
    program, *words = shlex.split(line)
    if program == "heimdall":
        arguments = [*words, *QUICK] if words[0] == "run" else words
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, f"{line}\n{result.output}"
        assert '"errors": []' in result.stdout or words[0] != "run", f"{line}\n{result.output}"
    elif words[:2] == ["-m", "pytest"]:
        for name, test in runpy.run_path(words[2]).items():
            if name.startswith("test_"):
                test()
    else:
        runpy.run_path(words[0], run_name="__main__")


def test_every_file_and_command_of_the_page_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) > 10
    for kind, text in BLOCKS:
        if kind == "python":
            write(text)
        else:
            for line in text.splitlines():
                execute(line)


def test_apps_have_as_many_lines_as_the_page_claims():
    claims = re.findall(r"\*\*(\d+) lines\*\*.*?```python\n(.*?)```", PAGE, re.DOTALL)
    assert claims
    for claimed, code in claims:
        lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
        assert len(lines) == int(claimed)


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", PAGE))))
def test_every_option_on_the_page_exists(option):
    params = [param for command in COMMANDS.values() for param in command.params]
    assert option in {name for param in params for name in param.opts}
