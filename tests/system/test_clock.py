"""Time in which nothing runs is left out; waiting ends when it should."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from heimdall.system.clock import LOOK_NS, AwakeClock, wait_until


def test_spinning_ends_at_the_deadline_of_the_given_clock():
    ticks = iter(range(0, 100, 10))
    wait_until(45, clock=lambda: next(ticks))
    assert next(ticks) == 60


def test_time_in_which_the_machine_slept_is_left_out(caplog):
    """By the system's clocks, where this one goes on meanwhile."""
    times, asleep = iter([5_000, 6_000, 6_000 + 9 * LOOK_NS, 6_500 + 9 * LOOK_NS]), [0]
    clock = AwakeClock(lambda: next(times), lambda: asleep[0], lambda then_ns: False)
    assert [clock(), clock()] == [5_000, 6_000]
    asleep[0] = 8 * LOOK_NS
    assert [clock(), clock()] == [6_000 + LOOK_NS, 6_500 + LOOK_NS]
    assert "8.0 s: not counted" in caplog.text


def test_a_stop_is_left_out_and_the_next_stall_is_not(caplog):
    times, stopped = iter([0, 3 * LOOK_NS, 9 * LOOK_NS]), iter([True, False])
    clock = AwakeClock(lambda: next(times), lambda: 0, lambda then_ns: next(stopped))
    assert [clock(), clock(), clock()] == [0, 0, 6 * LOOK_NS]
    assert "3.0 s: not counted" in caplog.text


def test_a_callback_that_waits_for_seconds_is_a_stall():
    """It uses no processor time, as a laptop that sleeps; but the system says nothing of sleep."""
    times = iter([0, 9 * LOOK_NS])
    clock = AwakeClock(lambda: next(times))
    assert [clock(), clock()] == [0, 9 * LOOK_NS]


def test_threads_that_wake_together_count_a_stop_once():
    now, went_on_ns = [1_000], 5 * LOOK_NS
    clock = AwakeClock(lambda: now[0], lambda: 0, lambda then_ns: then_ns < went_on_ns)
    clock()
    now[0] += went_on_ns
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: clock(), range(200))) == {1_000}


@pytest.mark.skipif(not hasattr(signal, "SIGCONT"), reason="Windows stops no process")
def test_the_signal_that_ends_a_stop_is_noticed_and_given_back():
    code = (
        "import os, signal, time\n"
        "from heimdall.system.clock import Stops\n"
        "stops, before_ns = Stops(), time.perf_counter_ns()\n"
        "with stops.noticed():\n"
        "    assert not stops.since(before_ns)\n"
        "    os.kill(os.getpid(), signal.SIGCONT)\n"
        "    time.sleep(0.2)\n"
        "    assert stops.since(before_ns)\n"
        "    assert not stops.since(time.perf_counter_ns())\n"
        "assert signal.SIGCONT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="Windows stops no process")
def test_a_process_that_was_stopped_says_so():
    """While a thread reads the clock all the time, and the main thread waits."""
    code = (
        "import queue, select, sys, threading, time\n"
        "from heimdall.system.clock import STOPS, AwakeClock\n"
        "clock, ended, reads = AwakeClock(), threading.Event(), threading.Event()\n"
        "def read():\n"
        "    while not ended.wait(0.01):\n"
        "        clock()\n"
        "        reads.set()\n"
        "with STOPS.noticed():\n"
        "    threading.Thread(target=read).start()\n"
        "    reads.wait()\n"
        "    print('ready', flush=True)\n"
        "    while not select.select([sys.stdin], [], [], 0)[0]:\n"
        "        try: queue.SimpleQueue().get(timeout=0.1)\n"
        "        except queue.Empty: pass\n"
        "    print(time.perf_counter_ns() - clock(), flush=True)\n"
        "    ended.set()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    child.send_signal(signal.SIGCONT)
    time.sleep(0.2)
    left_out_ns, _ = child.communicate("\n", timeout=60)
    assert int(left_out_ns) > 1_200_000_000
