"""`heimdall doctor` and `heimdall completion`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from heimdall.cli import main


def test_doctor_judges_this_machine():
    done = CliRunner().invoke(main, ["doctor", "--json"])
    findings = json.loads(done.stdout)["findings"]
    assert {each["level"] for each in findings} <= {"ok", "note", "missing"}
    assert done.exit_code == any(each["level"] == "missing" for each in findings)
    assert any(
        "pictures are drawn" in each["what"] or "OpenGL" in each["what"] for each in findings
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell):
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert "_HEIMDALL_COMPLETE" in done.stdout


def completed(*words: str) -> set[str]:
    """What bash would be offered for the last word."""
    environment = {
        **os.environ,
        "_HEIMDALL_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["heimdall", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = "from heimdall.cli import main; main(prog_name='heimdall')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    return {line.rpartition(",")[2] for line in done.stdout.splitlines()}


def test_commands_are_completed():
    assert {"run"} <= completed("ru")
