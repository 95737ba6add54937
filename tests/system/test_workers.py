"""Worker threads run what they are given, in order, and survive what it raises."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from heimdall.system.workers import OverdueError, Workers


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


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError])
def test_whatever_is_raised_is_told_and_the_thread_goes_on(error):
    def broken() -> None:
        raise error("out")

    told: list[BaseException] = []
    finished = threading.Event()
    workers = Workers("pool")
    workers.submit(broken, failed=told.append)
    workers.submit(finished.set)
    assert finished.wait(20)
    assert [type(each) for each in told] == [error]
    workers.close()


class Hang:
    """A call that hangs until it is released, by a clock of its own."""

    def __init__(self):
        self.now_ns = 0
        self.began, self.released = threading.Event(), threading.Event()
        self.told: list[BaseException] = []

    def clock(self):
        return self.now_ns

    def __call__(self):
        self.began.set()
        self.released.wait(20)
        raise ValueError("late")


def test_another_thread_takes_the_place_of_one_that_hangs():
    hang, finished = Hang(), threading.Event()
    others = set(threading.enumerate())
    workers = Workers("pool", clock=hang.clock)
    workers.submit(hang, bound_s=1.0, failed=hang.told.append)
    workers.submit(finished.set, bound_s=1.0)
    assert hang.began.wait(20)
    hang.now_ns = 1_000_000_000
    assert workers.give_up_overdue() == 0
    hang.now_ns += 1
    assert workers.give_up_overdue() == 1
    assert finished.wait(20)
    assert [type(each) for each in hang.told] == [OverdueError]
    assert "1.0 s" in str(hang.told[0])
    hung = set(threading.enumerate()) - others
    assert len(hung) == 2  # it, and the one in its place
    hang.released.set()
    workers.close()
    assert len(hang.told) == 1  # what it raised later is nobody's business
    for thread in hung:
        thread.join(20)
        assert not thread.is_alive()


def test_what_has_no_bound_may_take_as_long_as_it_likes():
    hang = Hang()
    workers = Workers("cpu", clock=hang.clock)
    workers.submit(hang, failed=hang.told.append)
    assert hang.began.wait(20)
    hang.now_ns = 3_600_000_000_000
    assert workers.give_up_overdue() == 0
    hang.released.set()
    workers.close()
    assert [str(each) for each in hang.told] == ["late"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_that_die_are_replaced(caplog):
    """They die where setting their priority raises."""
    fails = [True]

    def urgency() -> None:
        if fails:
            raise SystemExit(fails.pop())

    finished = threading.Event()
    workers = Workers("gpu", urgency=urgency)
    workers.submit(finished.set)
    while not workers.give_up_overdue():
        pass
    assert finished.wait(20)
    assert "gpu-0 has died" in caplog.text
    workers.close()


def test_who_asks_has_the_answer_or_what_was_raised():
    workers = Workers("asked")
    found, failed = workers.ask(divmod, 7, 2), workers.ask(divmod, 7, 0)
    assert found.result(10) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        failed.result(10)
    workers.close()


def test_threads_that_were_told_to_end_do_not_wait_for_others(caplog):
    done = threading.Event()
    busy, idle = Workers("busy"), Workers("idle")
    busy.submit(done.wait)
    for workers in (busy, idle):
        workers.end()
    busy.close(timeout_s=0.3)
    idle.close(timeout_s=0.0)
    done.set()
    assert [record.message.split()[0] for record in caplog.records] == ["busy-0"]
