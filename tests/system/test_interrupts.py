"""Signals that end the program: heard where everything is whole, and never lost."""

import contextlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from heimdall.system.interrupts import INTERRUPTS

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@pytest.fixture(autouse=True, params=SIGNALS, ids=lambda number: number.name)
def number(request):
    """Each of the signals, and a program that ends by it as by Ctrl-C."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(request.param, interrupt)
    yield request.param
    assert signal.getsignal(request.param) is interrupt  # whoever held it has given it back
    signal.signal(request.param, before)


def test_what_is_held_is_done_to_its_end(number):
    done = []
    with pytest.raises(KeyboardInterrupt), INTERRUPTS.held():  # noqa: PT012
        signal.raise_signal(number)
        done.append("the rest")
    assert done == ["the rest"]


def test_it_is_raised_where_it_is_due_and_only_once(number):
    done = []
    with INTERRUPTS.held():
        INTERRUPTS.due()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(number)
            done.append("whole")
            INTERRUPTS.due()
            done.append("never")
        INTERRUPTS.due()
    assert done == ["whole"]


def test_who_only_waits_is_interrupted_at_once(number):
    with INTERRUPTS.held():
        with pytest.raises(KeyboardInterrupt), INTERRUPTS.at_once():  # noqa: PT012
            signal.raise_signal(number)
            pytest.fail("it was not raised")
        signal.raise_signal(number)  # says the same once more


def test_one_that_has_been_heard_before_a_wait_does_not_wait(number):
    with INTERRUPTS.held(), pytest.raises(KeyboardInterrupt):  # noqa: PT012
        signal.raise_signal(number)
        with INTERRUPTS.at_once():
            pytest.fail("it waits")


def test_what_ends_anyway_is_not_interrupted_by_being_told_to(number):
    with INTERRUPTS.held():
        INTERRUPTS.ending()
        signal.raise_signal(number)
        INTERRUPTS.due()


def test_who_insists_is_heard_at_once(number, monkeypatch):
    monkeypatch.setattr("heimdall.system.interrupts.ONE_END_S", 0.01)
    with INTERRUPTS.held():
        INTERRUPTS.ending()
        signal.raise_signal(number)
        time.sleep(0.02)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            signal.raise_signal(number)
            pytest.fail("it was not raised")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
def test_code_that_comes_to_no_such_point_is_interrupted_all_the_same(number, monkeypatch):
    monkeypatch.setattr("heimdall.system.interrupts._PATIENCE_S", 0.05)
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with INTERRUPTS.held(), pytest.raises(KeyboardInterrupt):  # noqa: PT012
        signal.raise_signal(number)
        time.sleep(30)
        pytest.fail("it was never raised")
    assert signal.signal(signal.SIGALRM, before) is signal.SIG_DFL


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
def test_a_timer_of_the_host_goes_on(number):
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append("host"))
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, 0.05)
    with contextlib.suppress(KeyboardInterrupt), INTERRUPTS.held():
        signal.raise_signal(number)
    until_s = time.monotonic() + 10
    while not rang and time.monotonic() < until_s:
        time.sleep(0.01)
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, left_s)
    assert rang == ["host"]


def test_held_within_held_is_held_by_the_outer_one(number):
    done = []
    with pytest.raises(KeyboardInterrupt), INTERRUPTS.held():  # noqa: PT012
        with INTERRUPTS.held():
            signal.raise_signal(number)
        done.append("the rest")
    assert done == ["the rest"]


def test_an_error_does_not_swallow_it(number):
    with pytest.raises(KeyboardInterrupt) as raised, INTERRUPTS.held():  # noqa: PT012
        signal.raise_signal(number)
        raise ValueError("of the program's own")
    assert isinstance(raised.value.__context__, ValueError)


def test_one_that_is_ignored_stays_so(number):
    before = signal.signal(number, signal.SIG_IGN)
    with INTERRUPTS.held():
        assert signal.getsignal(number) is signal.SIG_IGN
        signal.raise_signal(number)
        INTERRUPTS.due()
    signal.signal(number, before)


def test_other_threads_hear_of_nothing(number):
    found = []

    def work():
        with INTERRUPTS.held():
            INTERRUPTS.due()
            found.append(threading.current_thread().name)

    with INTERRUPTS.held():
        signal.raise_signal(number)
        thread = threading.Thread(target=work, name="other")
        thread.start()
        thread.join()
        INTERRUPTS.ending()
    assert found == ["other"]


def test_a_signal_that_nobody_handles_ends_the_program_as_ever():
    code = (
        "import os, signal\n"
        "from heimdall.system.interrupts import INTERRUPTS\n"
        "with INTERRUPTS.held():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode != 0
