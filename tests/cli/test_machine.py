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


def completed(*words: str, kind: str = "plain") -> set[str]:
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
    found = [line.partition(",") for line in done.stdout.splitlines()]
    return {value for of, _, value in found if of == kind}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ru"], {"run"}),
        (["run", "sho"], {"shopping"}),
        (["serve", "emo"], {"emoji"}),
        (["run", "emoji", "--scheduler", "max"], {"max-min", "max-total"}),
        (["check", "selfie", "na"], {"nanodet"}),
        (["profile", "sel"], {"selfie"}),
        (["bench", "shop"], {"shopping", "shopping-phone"}),
        (["simulate", "split-1", "--device", "pix"], {"pixel-3-xl"}),
        (["simulate", "shopping", "--system", "multit"], {"multithread"}),
        (["bench", "shopping", "--systems", "edf,bou"], {"edf,bounded-2"}),
    ],
)
def test_commands_and_names_are_completed(words, offered):
    assert offered <= completed(*words)


def test_files_are_completed_where_no_name_begins_so():
    assert completed("run", "my_", kind="file") == {"my_"}
