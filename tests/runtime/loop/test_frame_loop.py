"""The life of a frame, told by a driver with made-up times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.coordinator.bystander import Bystander
from heimdall.errors import HeimdallError
from heimdall.runtime.loop.frame_loop import FrameLoop
from heimdall.vocabulary.events import FrameRendered, Reconfigured, RenderStarted

INTERVAL = 30_000_000
START = 1_000_000_000


class Told(Bystander):
    """Keeps what it is told."""

    def __init__(self):
        super().__init__()
        self.events = []

    def receive(self, event, now_ns):
        self.events.append((event, now_ns))
        return super().receive(event, now_ns)


def make_loop(coordinator=None, **changes):
    options = {"interval_ns": INTERVAL, "start_ns": START, "drawing_ns": 5_000_000, "guard_ns": 0}
    return FrameLoop(coordinator or Told(), **{**options, **changes})


def turn(loop, took_ns=4_000_000, late_ns=0, more_ns=0):
    """One frame that starts ``late_ns`` after it should, and is ready ``more_ns`` after it is
    drawn; its times."""
    began_ns = loop.start_ns + late_ns
    loop.started(began_ns)
    loop.drawn(began_ns + took_ns, took_ns)
    loop.opened(began_ns + took_ns)
    ready_ns = began_ns + took_ns + more_ns
    return loop.presented(max(loop.present_ns, ready_ns), ready_ns)


def test_the_coordinator_hears_of_a_frame_and_of_the_gap_after_it():
    told = Told()
    loop = make_loop(told)
    turn(loop)
    (started, at_ns), (rendered, then_ns) = told.events
    assert (started, at_ns) == (RenderStarted(0), START)
    assert (rendered, then_ns) == (FrameRendered(0, START + INTERVAL, 4_000_000), START + 4_000_000)


def test_what_follows_drawing_counts_where_it_holds_up_the_frame():
    """The choice of what the gap is for, among others."""
    loop = make_loop()
    late = 0
    for frame in range(300):
        times = turn(loop, took_ns=1_000_000, more_ns=6_000_000 + 10_000 * (frame % 100))
        late += times.presented_ns > times.deadline_ns
    assert late < 15


def test_frames_are_presented_when_all_but_the_rarest_are_drawn():
    loop = make_loop()
    first = turn(loop)
    assert first.deadline_ns == START + 5_000_000
    assert first.presented_ns == first.deadline_ns
    for _ in range(50):
        turn(loop, took_ns=9_000_000)
    usual = turn(loop, took_ns=8_000_000)
    assert usual.presented_ns > usual.drawn_ns  # it waits for those that take longer


def test_a_deadline_is_never_later_than_half_an_interval():
    loop = make_loop(drawing_ns=29_000_000)
    assert turn(loop).deadline_ns == START + INTERVAL // 2


def test_a_late_frame_skips_its_successors_places():
    loop = make_loop()
    times = turn(loop, took_ns=70_000_000)
    assert times.skipped == 2
    assert loop.start_ns == START + 3 * INTERVAL
    assert times.presented_ns == times.drawn_ns


def test_a_gap_ends_when_somebody_elses_frame_starts():
    told = Told()
    loop = make_loop(told)
    loop.started(START)
    loop.drawn(START + 4_000_000, 4_000_000)
    loop.opened(START + 4_000_000, START + 20_000_000)
    assert told.events[-1][0].gap_end_ns == START + 20_000_000


def test_a_gap_closes_early_where_the_gpu_may_not_work_all_the_time():
    told = Told()
    loop = make_loop(told, load_limit=0.9)
    for _ in range(30):
        loop.worked(INTERVAL)
        turn(loop)
    assert told.events[-1][0].gap_end_ns <= loop.start_ns - 0.1 * INTERVAL


def test_submitting_begins_earlier_when_it_takes_longer_and_later_again_slowly():
    loop = make_loop()
    first = loop.start_ns - loop.submit_ns
    loop.submitted(10_000_000)
    longer = loop.start_ns - loop.submit_ns
    loop.submitted(1_000_000)
    assert first < longer
    assert longer - (loop.start_ns - loop.submit_ns) < (longer - first) / 5


def test_a_picture_is_taken_as_late_as_sending_it_allows():
    loop = make_loop()
    for _ in range(200):
        loop.loaded(1_000_000)
    assert 1_000_000 < loop.submit_ns - loop.take_ns < 2_000_000


def test_a_shift_moves_the_frames_that_follow():
    loop = make_loop()
    turn(loop)
    loop.shift(-500_000)
    assert loop.start_ns == START + INTERVAL - 500_000
    turn(loop)
    assert loop.start_ns == START + 2 * INTERVAL - 500_000


def test_another_rate_counts_from_the_next_frame_on():
    loop = make_loop()
    turn(loop)
    loop.reconfigured(Reconfigured("max-min", "elastic", 2 * INTERVAL, ()), START + 6_000_000)
    turn(loop)
    assert loop.start_ns == START + 3 * INTERVAL


@pytest.mark.parametrize("step", ["drawn", "opened", "presented"])
def test_a_turn_out_of_order_is_refused(step):
    loop = make_loop()
    arguments = {"drawn": (START, 1), "opened": (START,), "presented": (START,)}
    with pytest.raises(HeimdallError, match="a turn goes started, drawn, opened, presented"):
        getattr(loop, step)(*arguments[step])


@given(st.lists(st.tuples(st.integers(1, 10**8), st.integers(0, 10**8)), max_size=30))
def test_whatever_drawing_takes_frames_are_in_order_and_on_the_grid(turns):
    loop, last = make_loop(), None
    for took_ns, late_ns in turns:
        times = turn(loop, took_ns, late_ns)
        assert (times.start_ns - START) % INTERVAL == 0
        assert times.presented_ns >= max(times.drawn_ns, times.deadline_ns)
        assert loop.start_ns >= times.drawn_ns
        if last is not None:
            assert times.number == last.number + 1
            assert times.start_ns == last.start_ns + (last.skipped + 1) * INTERVAL
        last = times
