"""How commands talk: pure JSON, one line an error, a status for each kind of end."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from heimdall.cli import console
from heimdall.errors import ConfigError


def test_json_output_is_pure_whatever_is_printed_meanwhile():
    code = (
        "import os\n"
        "from heimdall.cli import console\n"
        "with console.work(True):\n"
        "    print('an app prints')\n"
        "    os.write(1, b'a driver prints\\n')\n"
        "    os.system('echo a child prints')\n"
        "console.print_json({'value': float('nan')})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == '{"value": null}\n'
    for who in ("an app", "a driver", "a child"):
        assert f"{who} prints" in done.stderr


def test_numpy_values_and_paths_become_json(capsys):
    console.print_json({"a": np.float32(1.5), "b": np.int64(2), "c": Path("x"), "d": (1, None)})
    assert json.loads(capsys.readouterr().out) == {"a": 1.5, "b": 2, "c": "x", "d": [1, None]}


def group_with(failure: BaseException) -> click.Group:
    @click.group(cls=console.Commands)
    def group() -> None: ...

    @group.command()
    def fail() -> None:
        raise failure

    return group


@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        (ConfigError("rate: must be positive"), 2, "error: rate: must be positive"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (click.FileError("x.mp4", "cannot be read"), 2, "error: "),
    ],
)
def test_each_kind_of_end_has_its_status(failure, status, said):
    result = CliRunner().invoke(group_with(failure), ["fail"])
    assert result.exit_code == status
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bug_is_not_hidden():
    result = CliRunner().invoke(group_with(ZeroDivisionError()), ["fail"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_progress_prints_a_line_for_each_step_where_there_is_no_terminal(capsys):
    with console.ProgressBars() as progress:
        for done in range(4):
            progress("profiling nanodet", done, 3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "profiling nanodet ..."
    assert lines[1].startswith("profiling nanodet: done in")
    assert len(lines) == 2


def test_a_step_begun_by_another_is_told_once_only_when_it_is_done(capsys):
    with console.ProgressBars() as progress:
        for what in ("reading", "compiling"):
            for done in (0, 1, 2, 2):
                progress(what, done, 2)
    told = capsys.readouterr().err
    assert told.count("reading") == told.count("compiling") == 2


def test_what_json_lacks_becomes_null(capsys):
    console.print_json({"a": [float("inf"), np.float64("nan"), None], 3: True})
    assert json.loads(capsys.readouterr().out) == {"a": [None, None, None], "3": True}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are not sent to processes there")
def test_to_be_terminated_is_to_be_interrupted():
    before = signal.getsignal(signal.SIGTERM)

    @click.group(cls=console.Commands)
    def group() -> None: ...

    @group.command()
    def wait() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)  # the handler does not wait for it

    assert CliRunner().invoke(group, ["wait"]).exit_code == console.INTERRUPTED
    assert signal.getsignal(signal.SIGTERM) is before


def test_nothing_is_collected_while_modules_are_loaded():
    with console.uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), console.uncollected():
        raise KeyError
    assert gc.isenabled()


@pytest.fixture
def loggers():
    """The loggers that are set up, put back afterwards."""
    root, own = logging.getLogger(), logging.getLogger("heimdall")
    before = root.handlers[:], root.level, own.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    own.setLevel(before[2])


@pytest.mark.parametrize("debug", [False, True])
def test_warnings_are_lines_and_details_come_with_debug(capsys, loggers, debug):
    console.set_up_logging(debug)
    log = logging.getLogger("heimdall.somewhere")
    log.debug("a detail")
    log.warning("a warning")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["DEBUG: a detail"] * debug + ["warning: a warning"]


def test_a_program_ends_with_its_status_past_what_libraries_do_at_the_end():
    code = """
import atexit, sys, threading, time
from heimdall.cli.console import run_as_program

class Slow:
    def __del__(self):
        time.sleep(60)

kept = Slow()
atexit.register(print, "registered")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
run_as_program(lambda: sys.exit({}))
"""
    for given, status in (("3", 3), ("", 0), ("'no'", 1)):
        done = subprocess.run(
            [sys.executable, "-c", code.format(given)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode, done.stderr) == (status, "")
        assert done.stdout.split() == ["thread", "registered"]
