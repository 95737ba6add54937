from __future__ import annotations

import logging
import os
import signal
import sys
import time

import pytest

from heimdall.lab.bench import apart
from heimdall.lab.bench.apart import Hearing, as_arguments, run_apart

PROGRAM = "import sys; print('out'); print('warning: hot', file=sys.stderr); sys.exit(3)"


def test_output_status_and_what_was_said():
    lines: list[str] = []
    output, status = run_apart([sys.executable, "-c", PROGRAM], lines.append)
    assert (output.strip(), status, lines) == ("out", 3, ["warning: hot"])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
def test_a_program_that_was_killed_is_over_though_what_it_started_holds_its_pipes(monkeypatch):
    monkeypatch.setattr(apart, "LAST_WORDS_S", 0.1)
    lines: list[str] = []
    code = (
        "import os, signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    began_s = time.monotonic()
    output, status = run_apart([sys.executable, "-c", code], lines.append)
    os.kill(int(output), signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert time.monotonic() - began_s < 50  # not the minute that the other one sleeps


def test_a_warning_is_passed_on_once(caplog):
    heard: set[str] = set()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            hearing = Hearing(heard)
            hearing("warning: hot")
            hearing("Segmentation fault")
    assert caplog.messages == ["hot"]
    assert list(hearing.said) == ["Segmentation fault"]


def test_options_become_the_command_line_they_came_from():
    options = {"seconds": 2.5, "size": (640, 480), "device": None, "realtime": False}
    assert as_arguments(options) == ["--seconds", "2.5", "--size", "640x480", "--no-realtime"]
    assert as_arguments({"realtime": True, "gpu_cores": 1}) == ["--realtime", "--gpu-cores", "1"]
    assert as_arguments({"model": ["a=b.onnx", "c=d.onnx"]}) == [
        "--model",
        "a=b.onnx",
        "--model",
        "c=d.onnx",
    ]
