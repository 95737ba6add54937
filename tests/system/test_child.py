"""A child that a driver ends is outlived, whatever the way, and the way is named."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Mapping
from typing import Any

import psutil
import pytest

from heimdall.errors import DeviceError
from heimdall.system.child import STOPPED, watch

BEGIN = """
import json, os, signal, sys, time
from heimdall.system.child import _MARK, report
def half(end=""):
    os.write(1, f"\\n{_MARK}{{\\"found\\": \\"pro{end}".encode())
report({"step": "first"})
report({"found": "first", "value": 1})
report({"step": "second"})
"""


def child(rest: str) -> list[str]:
    return [sys.executable, "-c", BEGIN + textwrap.dedent(rest)]


def test_what_a_child_has_found_is_known_when_it_is_done():
    outcome = watch(child("report({'done': True})"))
    assert (dict(outcome.found), outcome.ended) == ({"first": 1}, "")


def test_what_a_driver_prints_between_is_no_report():
    outcome = watch(child("print('half a line', end=''); report({'done': True}); print('more')"))
    assert (dict(outcome.found), outcome.ended) == ({"first": 1}, "")


posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.parametrize(
    ("rest", "how"),
    [
        pytest.param("os.abort()", "by SIGABRT", marks=posix),
        pytest.param("os.kill(os.getpid(), signal.SIGSEGV)", "by SIGSEGV", marks=posix),
        pytest.param("half(); os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL", marks=posix),
        ("half(); os._exit(3)", "with status 3"),
        ("half(end='}\\n'); time.sleep(600)", "its report cannot be read: '"),
        ("os.write(1, (_MARK + '[1, 2]\\n').encode()); time.sleep(600)", "cannot be read: '"),
        ("report({'found': 'no value'}); time.sleep(600)", "cannot be read: '"),
        ("os._exit(3)", "with status 3"),
        ("os._exit(0)", "with status 0"),
        ("raise RuntimeError('broken')", "with status 1 (RuntimeError: broken)"),
        ("os.write(2, b'LLVM ERROR: no such thing\\n'); os._exit(70)", "LLVM ERROR: no such thing"),
        ("time.sleep(600)", "it hangs: no answer within 2 s"),
        ("os.close(1); time.sleep(600)", "it hangs: no answer within 2 s"),
    ],
)
def test_a_child_that_ends_is_said_to_have_ended_so(rest, how):
    outcome = watch(child(rest), limit_s=2)
    assert outcome.step == "second"
    assert dict(outcome.found) == {"first": 1}
    assert how in outcome.ended


YIELD = """
from pathlib import Path
os.nice(10)  # a tenth of what another process gets
group = Path("/proc/self/autogroup")
if group.exists():
    group.write_text("10")
until = time.process_time() + 0.4
while time.process_time() < until: pass
report({'done': True})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="how long a thread waited: Linux")
def test_a_child_that_others_keep_from_running_does_not_hang():
    here = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(here)})  # what is started here stays there
    try:
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        outcome = watch(child(YIELD), limit_s=2)
    finally:
        busy.kill()
        busy.wait()
        os.sched_setaffinity(0, here)
    assert outcome.ended == ""


@posix
def test_what_a_hanging_child_has_started_ends_with_it(tmp_path):
    """Such as the linker of a driver's compiler."""
    pid = tmp_path / "pid"
    outcome = watch(
        child(f"""
        import subprocess
        started = subprocess.Popen(["sleep", "600"])
        open({str(pid)!r}, "w").write(str(started.pid))
        time.sleep(600)
        """),
        limit_s=2,
    )
    assert "hangs" in outcome.ended
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(int(pid.read_text()))
        while started.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            time.sleep(0.01)  # else this test runs out of time


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(DeviceError, match="/nowhere/python"):
        watch(["/nowhere/python"])


def test_a_child_is_told_what_to_do_as_often_as_it_asks():
    orders = ["one", "two"]
    heard: list[Mapping[str, Any]] = []
    outcome = watch(
        child("""
        from heimdall.system.child import ask
        while (order := ask()) is not None:
            report({"found": order, "value": order.upper()})
        report({"done": True})
        """),
        hear=heard.append,
        give=lambda: orders.pop(0) if orders else None,
    )
    assert outcome.ended == ""
    assert dict(outcome.found) == {"first": 1, "one": "ONE", "two": "TWO"}
    assert heard[0] == {"step": "first"}
    assert heard[-1] == {"found": "two", "value": "TWO"}


def test_a_child_that_is_not_to_go_on_is_stopped():
    stop = threading.Event()
    outcome = watch(child("time.sleep(600)"), hear=lambda message: stop.set(), stop=stop)
    assert outcome.ended == STOPPED


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux")
def test_a_child_that_yields_is_nice_and_has_all_cores():
    cores = os.sched_getaffinity(0)
    outcome = watch(
        child("""
        report({"step": "wait"})
        sys.stdin.close()
        while os.nice(0) != 19:
            time.sleep(0.01)
        report({"found": "cores", "value": sorted(os.sched_getaffinity(0))})
        report({"done": True})
        """),
        yields=True,
    )
    assert outcome.ended == ""
    assert set(outcome.found["cores"]) >= cores
