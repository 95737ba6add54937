"""Frame starts stay on an absolute grid."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from heimdall.pacing import SLEEP_NS, AwakeClock, Pacer, Usual, spin_until


def test_frames_on_time_start_one_interval_apart():
    pacer = Pacer(interval_ns=33, start_ns=1000)
    assert [pacer.next_ns, pacer.advance(1005), pacer.next_ns] == [1000, 0, 1033]


def test_a_late_frame_skips_whole_intervals_and_is_not_caught_up():
    pacer = Pacer(interval_ns=33, start_ns=0)
    assert pacer.advance(now_ns=100) == 3  # starts at 33, 66 and 99 have passed
    assert pacer.next_ns == 132


@given(st.integers(1, 10**8), st.lists(st.integers(0, 10**9), max_size=30))
def test_starts_are_ahead_and_on_the_grid_whatever_happens(interval, delays):
    pacer, now = Pacer(interval, 0), 0
    for delay in delays:
        now = max(now, pacer.next_ns) + delay
        pacer.advance(now)
        assert pacer.next_ns % interval == 0
        assert now <= pacer.next_ns < now + interval + 1


@given(st.integers(0, 2**32), st.floats(3e6, 9e6), st.floats(1e5, 2e6))
def test_what_is_usual_is_exceeded_as_rarely_as_asked(seed, mean_ns, spread_ns):
    draw, usual, longer = random.Random(seed), Usual(int(mean_ns), rare=0.05), 0
    for frame in range(4000):
        took_ns = round(draw.gauss(mean_ns, spread_ns))
        longer += frame >= 1000 and took_ns > usual.ns
        usual.observe(took_ns)
    assert 0.04 <= longer / 3000 <= 0.06


def test_one_outlier_hardly_counts():
    usual = Usual(5_000_000)
    usual.observe(90_000_000)
    assert 5_000_000 < usual.ns <= 5_000_000 + Usual.STEP_NS


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


def test_threads_that_wake_together_count_a_sleep_once():
    now = [1_000]
    clock = AwakeClock(lambda: now[0])
    clock()
    now[0] += 5 * SLEEP_NS
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: clock(), range(200))) == {1_000}
