"""Frame starts stay on an absolute grid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heimdall.pacing import Pacer, spin_until


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


def test_spinning_ends_at_the_deadline_of_the_given_clock():
    ticks = iter(range(0, 100, 10))
    spin_until(45, clock=lambda: next(ticks))
    assert next(ticks) == 60
