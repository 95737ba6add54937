"""Worker threads run what they are given, in order, and survive what it raises."""

from __future__ import annotations

import subprocess
import sys
import threading

from heimdall.system.workers import Workers


def test_one_worker_keeps_the_order_and_close_waits_for_all():
    done: list[int] = []
    workers = Workers("test")
    for number in range(50):
        workers.submit(done.append, number)
    workers.close()
    assert done == list(range(50))


def test_an_error_is_logged_and_the_thread_goes_on(caplog):
    def broken() -> None:
        raise RuntimeError("kernel lost")

    finished = threading.Event()
    workers = Workers("gpu")
    workers.submit(broken)
    workers.submit(finished.set)
    workers.close()
    assert finished.is_set()
    assert "gpu: broken failed" in caplog.text
    assert "kernel lost" in caplog.text


def test_several_workers_run_at_the_same_time():
    meet = threading.Barrier(2, timeout=10)
    workers = Workers("pool", count=2)
    workers.submit(meet.wait)
    workers.submit(meet.wait)
    workers.close()
    assert not meet.broken


def test_a_command_ends_past_a_thread_that_hangs():
    """With its own status, and without the interpreter unwinding that thread."""
    code = (
        "import threading, time\n"
        "import click\n"
        "from heimdall.cli.console import Commands\n"
        "from heimdall.system.workers import Workers\n"
        "main = Commands('main')\n"
        "@main.command()\n"
        "def hang():\n"
        "    workers = Workers('cpu')\n"
        "    workers.submit(threading.Event().wait)\n"
        "    workers.close(timeout_s=0.1)\n"
        "    print('summary')\n"
        "    return 3\n"
        "main(['hang'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, "summary\n"), done.stderr
    assert "left behind" in done.stderr
