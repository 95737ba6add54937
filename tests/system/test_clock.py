"""Time in which nothing runs is left out; waiting ends when it should."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from heimdall.system.clock import SLEEP_NS, AwakeClock, spin_until


def test_spinning_ends_at_the_deadline_of_the_given_clock():
    ticks = iter(range(0, 100, 10))
    spin_until(45, clock=lambda: next(ticks))
    assert next(ticks) == 60


def test_time_in_which_nothing_ran_is_left_out(caplog):
    times = iter([5_000, 6_000, 6_000 + 9 * SLEEP_NS, 6_500 + 9 * SLEEP_NS])
    clock = AwakeClock(lambda: next(times))
    assert [clock() for _ in range(4)] == [5_000, 6_000, 6_000, 6_500]
    assert "nothing ran for 18.0 s" in caplog.text


def test_a_long_callback_is_no_sleep():
    times = iter([0, SLEEP_NS, 2 * SLEEP_NS])
    clock = AwakeClock(lambda: next(times))
    assert [clock() for _ in range(3)] == [0, SLEEP_NS, 2 * SLEEP_NS]


def test_a_wait_for_seconds_while_other_threads_work_is_no_sleep():
    times, used = iter([0, 9 * SLEEP_NS, 10 * SLEEP_NS, 30 * SLEEP_NS]), [0]
    clock = AwakeClock(lambda: next(times), lambda: used[0])
    assert clock() == 0
    used[0] += 8 * SLEEP_NS  # the GPU of this process is its own threads
    assert [clock(), clock()] == [9 * SLEEP_NS, 10 * SLEEP_NS]
    used[0] += SLEEP_NS
    assert clock() == 10 * SLEEP_NS


def test_threads_that_wake_together_count_a_sleep_once():
    now = [1_000]
    clock = AwakeClock(lambda: now[0])
    clock()
    now[0] += 5 * SLEEP_NS
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: clock(), range(200))) == {1_000}
