"""Frame starts stay on an absolute grid."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.runtime.loop.pacing import GAP_GUARD_NS, Follower, Pacer, Reserve, Usual


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


# --- what the system keeps of a real-time GPU ----------------------------------------------------

FRAME_NS = 33_333_333


def worked(limit, shares):
    """A GPU that works these shares of what it may in each frame: (ns of work, guards)."""
    reserve, now_ns = Reserve(limit, FRAME_NS), 0
    work, guards = [], [reserve.guard_ns(now_ns)]
    for share in shares:
        work.append(int(share * (FRAME_NS - guards[-1])))
        reserve.worked(work[-1])
        now_ns += FRAME_NS
        guards.append(reserve.guard_ns(now_ns))
    return work, guards


def test_a_gap_closes_early_only_where_the_gpu_never_idles():
    _, busy = worked(0.94, [1.0] * 60)
    _, idling = worked(0.94, [0.9] * 60)
    assert busy[-1] == pytest.approx(0.06 * FRAME_NS, rel=0.05)
    assert idling[-1] == GAP_GUARD_NS
    assert worked(1.0, [1.0] * 60)[1] == [GAP_GUARD_NS] * 61  # nothing is kept of a real GPU


@given(st.lists(st.floats(0, 1), min_size=60, max_size=90))
def test_no_second_has_more_work_than_the_system_allows(shares):
    work, _ = worked(0.94, shares)
    seconds = [sum(work[start : start + 30]) for start in range(len(work) - 29)]
    assert max(seconds) <= 0.95 * 30 * FRAME_NS


def test_a_frame_that_took_long_does_not_close_later_gaps():
    reserve = Reserve(0.94, FRAME_NS)
    reserve.guard_ns(0)
    reserve.worked(900_000_000)
    assert reserve.guard_ns(FRAME_NS) < FRAME_NS / 5


# --- frames that follow their source -------------------------------------------------------------


def waits(
    camera_ns,
    jitter_ns=0,
    first_ns=20_000_000,
    seconds=40,
    interval_ns=FRAME_NS,
    spare_ns=1_000_000,
):
    """How long pictures wait before each frame takes one, in ms, and how long all frames take."""
    follower, draw = Follower(), random.Random(7)
    follower.spare_ns = spare_ns
    take_ns, number, found = 100_000_000, 0, []
    newest_ns = next_ns = first_ns
    while take_ns < seconds * 1e9:
        while next_ns <= take_ns:
            newest_ns, number = next_ns, number + 1
            next_ns = first_ns + round(number * camera_ns + draw.uniform(0, jitter_ns))
        follower.arrived(number, first_ns + round(number * camera_ns), newest_ns)
        found.append((take_ns - newest_ns) / 1e6)
        take_ns += interval_ns + follower.shift_ns(take_ns, interval_ns)
    return found, take_ns - 100_000_000


@pytest.mark.parametrize("first_ms", [1, 9, 17, 25, 33])
@pytest.mark.parametrize("rate", [29.97, 30, 30.1, 15])
def test_frames_come_to_take_pictures_that_have_just_come(rate, first_ms):
    found, took_ns = waits(1e9 / rate, first_ns=first_ms * 1_000_000)
    fresh = sorted(found[-200:])
    assert fresh[50] < 1.2  # of 15 a second each picture is drawn twice
    assert len(found) / took_ns * 1e9 >= 29.92


@pytest.mark.parametrize(("spare_ms", "wait_ms"), [(6, 6), (0, 1), (90, 10)])
def test_pictures_can_be_let_wait_for_what_is_found_in_them(spare_ms, wait_ms):
    found, _ = waits(1e9 / 30, spare_ns=spare_ms * 1_000_000)
    assert sorted(found[-200:])[100] == pytest.approx(wait_ms, abs=0.3)


def test_pictures_that_scatter_are_given_time_to_come():
    found, _ = waits(FRAME_NS, jitter_ns=6_000_000)
    late = [wait for wait in found[-300:] if wait > 20]  # a picture was missed, and is drawn later
    assert len(late) < 50
    assert 2 < sorted(found[-300:])[150] < 8


def test_a_faster_camera_is_taken_at_its_newest():
    found, _ = waits(1e9 / 60)
    assert sorted(found[-200:])[100] < 1.2


@pytest.mark.parametrize("rate", [25, 26.777, 29, 31, 50])
def test_a_source_of_another_rate_moves_nothing(rate):
    found, took_ns = waits(1e9 / rate)
    assert took_ns == len(found) * FRAME_NS


def test_a_source_that_stands_still_for_a_moment_is_followed_on():
    follower = Follower()
    for number in range(60):
        at_ns = number * FRAME_NS + (number > 50) * 200_000_000
        follower.arrived(number, at_ns, at_ns)
    assert follower.shift_ns(at_ns + 15_000_000, FRAME_NS) < 0


def test_a_still_camera_or_one_that_has_just_begun_moves_nothing():
    follower = Follower()
    assert follower.shift_ns(0, FRAME_NS) == 0
    for _ in range(100):
        follower.arrived(3, 5, 6)
    assert follower.shift_ns(0, FRAME_NS) == 0
