"""Our processes start once, whatever program Python is in."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import heimdall
from heimdall.system import python

HOME = Path(heimdall.__file__).parents[1]
APP = """
import sys
sys.frozen, sys.executable = True, {launcher!r}
with open({log!r}, "a") as log:
    log.write("started\\n")
import heimdall  # the processes end here
with open({log!r}, "a") as log:
    log.write("went on\\n")
from heimdall.system.python import command
import subprocess
worker = command("heimdall.tracking.slam.worker")
subprocess.run(worker, stdin=subprocess.DEVNULL, check=True, timeout=60)
"""


def test_an_interpreter_is_used_where_this_is_one():
    assert python.command("heimdall.x", "1") == (sys.executable, "-m", "heimdall.x", "1")


@pytest.mark.skipif(os.name == "nt", reason="the launcher is a shell script")
def test_a_frozen_app_becomes_the_module_and_does_not_start_again(tmp_path):
    log, launcher, app = tmp_path / "log", tmp_path / "app", tmp_path / "app.py"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{app}" "$@"\n')
    launcher.chmod(0o755)
    app.write_text(APP.format(launcher=str(launcher), log=str(log)))
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    done = subprocess.run([launcher], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert log.read_text().splitlines() == ["started", "went on", "started"]


def test_only_modules_of_ours_are_run(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["app", python.MARK, "http.server"])
    python.become()
    assert sys.argv[0] == "app"


def test_a_program_that_embeds_python_has_its_interpreter_found(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "maya"))
    monkeypatch.setattr(sys, "_base_executable", str(tmp_path / "maya"))
    for name in ("exec_prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path))
    assert python.command("heimdall.x")[0] == python.NONE
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text("")
    (tmp_path / "bin" / "python3").chmod(0o755)
    assert python.command("heimdall.x")[0] == str(tmp_path / "bin" / "python3")


def test_no_other_place_starts_the_interpreter_by_itself():
    """The laboratory does: it runs from a checkout."""
    starts = re.compile(r"sys\\.executable,\\s*\"-m\"")
    ours = [
        str(file.relative_to(HOME))
        for file in (HOME / "heimdall").rglob("*.py")
        if "lab" not in file.parts and starts.search(file.read_text(encoding="utf-8"))
    ]
    assert ours == []


def test_each_module_that_we_start_has_a_main_of_its_own():
    """A frozen app calls it; its arguments are those of the command line."""
    started = {
        module
        for file in (HOME / "heimdall").rglob("*.py")
        for module in re.findall(r"python\.command\(\s*\"([\w.]+)", file.read_text("utf-8"))
    }
    assert len(started) >= 6
    for module in sorted(started):
        parameters = inspect.signature(importlib.import_module(module).main).parameters
        assert not parameters, module
