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


def test_a_drain_returns_when_what_is_queued_has_been_done():
    done: list[int] = []
    workers = Workers("pool", count=2)
    for number in range(50):
        workers.submit(done.append, number)
    assert workers.drain(timeout_s=20)
    assert sorted(done) == list(range(50))
    workers.close()
    assert workers.drain()  # nothing can run any more


def test_a_drain_tells_of_a_thread_that_is_still_busy_and_the_others_go_on(caplog):
    released, again = threading.Event(), threading.Event()
    workers = Workers("pool", count=2)
    workers.submit(released.wait, 20)
    assert not workers.drain(timeout_s=0.05)
    workers.submit(again.set)
    assert again.wait(20)  # a thread that arrives alone does not wait for ever
    released.set()
    assert workers.drain(timeout_s=20)
    workers.close()
    assert caplog.text == ""


def test_threads_left_behind_are_not_drained():
    released = threading.Event()
    workers = Workers("gpu")
    workers.submit(released.wait, 20)
    workers.close(timeout_s=0.05)
    assert not workers.drain(timeout_s=0)
    released.set()
