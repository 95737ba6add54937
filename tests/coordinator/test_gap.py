from __future__ import annotations

from heimdall.coordinator.gap import Gap


def gap_of(start=0, end=100, busy=False):
    gap = Gap(130)
    gap.open(start, end, busy)
    return gap


def test_utilization_counts_gap_time_with_work_only():
    gap = gap_of()
    gap.advance(20)  # nothing to run until 20
    gap.runnable = True
    gap.chunk_started(20)
    gap.advance(70)
    gap.chunk_ended(45)
    gap.runnable = False
    gap.advance(90)
    assert (gap.opened_ns, gap.runnable_ns, gap.busy_ns, gap.overruns) == (90, 50, 45, 0)


def test_time_after_the_gap_is_not_counted():
    gap = gap_of()
    gap.runnable = True
    gap.advance(150)
    gap.close(150)
    gap.advance(180)
    assert (gap.opened_ns, gap.runnable_ns) == (100, 100)


def test_a_chunk_that_ends_after_its_gap_is_an_overrun():
    gap = gap_of()
    gap.chunk_started(60)
    gap.close(100)
    gap.chunk_ended(55)
    assert (gap.busy_ns, gap.overruns) == (40, 1)


def test_a_chunk_that_runs_on_into_the_next_gap_counts_in_both():
    gap = gap_of()
    gap.chunk_started(60)
    gap.close(100)
    gap.open(130, 230, busy=True)
    gap.chunk_ended(90)  # until 150
    assert (gap.busy_ns, gap.overruns) == (40 + 20, 1)


def test_time_in_which_a_chunk_held_the_gpu_for_the_cpu_is_not_counted():
    gap = gap_of()
    gap.chunk_started(10)
    gap.chunk_ended(30, 20)  # until 60
    gap.chunk_started(60)
    gap.close(100)
    gap.open(130, 230, busy=True)
    gap.chunk_ended(70, 20)  # until 150
    assert (gap.busy_ns, gap.overruns) == (30 + 20 + 0, 1)


def test_a_gap_is_fresh_until_a_chunk_starts_or_a_tenth_has_passed():
    gap = gap_of()
    assert gap.room(10)[1]
    assert not gap.room(11)[1]
    gap.chunk_started(0)
    assert not gap.room(0)[1]


def test_a_frame_that_is_already_late_leaves_an_empty_gap():
    gap = gap_of(start=100, end=90)
    assert gap.room(100)[0] == 0


def test_the_usual_gap_follows_what_is_seen():
    gap = gap_of(0, 100)
    assert gap.usual_ns == 100
    for i in range(1, 60):
        gap.open(1000 * i, 1000 * i + 50, busy=False)
    assert 50 <= gap.usual_ns < 62
