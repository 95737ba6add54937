"""A chunk is handed out in parts, and ends with its gap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heimdall.runtime.execution.yield_points import YieldPoints
from heimdall.vocabulary.events import RunChunk
from heimdall.vocabulary.processors import GPU

MS = 1_000_000
WAIT_NS = 400_000  # parts of 3 ms


def chunk(start, end, expected_ms, until_ms):
    return RunChunk(0, "a", 0, 0, GPU, start, end, int(expected_ms * MS), "test", until_ms * MS)


def played(op_ms, running, slowness):
    """(the op before which it stops, when that is in ms) on a device that is ``slowness`` times
    as slow as expected."""
    factor = slowness * running.expected_ns / sum(op_ms[running.start_op : running.end_op])

    def after_ns(end):
        return factor * sum(op_ms[running.start_op : end])

    now_ns = 0
    pace = YieldPoints([int(ms * MS) for ms in op_ms], WAIT_NS).pace(running, lambda: now_ns)
    reached = running.start_op
    for part, end in enumerate(pace.ends):
        if part >= 2:
            now_ns = after_ns(pace.ends[part - 2])
            if not pace.go_on(part, part - 1):
                break
        reached = end
    return reached, after_ns(reached) / MS


def test_a_chunk_is_handed_out_a_few_milliseconds_at_a_time_and_less_at_its_end():
    pace = YieldPoints([1 * MS] * 20, WAIT_NS).pace(chunk(0, 20, 20, 25), lambda: 0)
    assert pace.ends == [3, 6, 9, 12, 15, 17, 18, 19, 20]


def test_parts_are_shorter_where_a_wait_costs_little():
    pace = YieldPoints([1 * MS] * 10, 50_000).pace(chunk(0, 10, 10, 25), lambda: 0)
    assert pace.ends == [2, 4, 6, 8, 9, 10]


def test_parts_are_as_long_by_what_is_expected_now_as_others_by_the_profile():
    pace = YieldPoints([1 * MS] * 5, WAIT_NS).pace(chunk(0, 5, 15, 25), lambda: 0)
    assert pace.ends == [1, 2, 3, 4, 5]


def test_a_part_ends_at_fallback_ops():
    marks = [False] * 4 + [True] * 2 + [False] * 6
    pace = YieldPoints([1 * MS] * 12, WAIT_NS, marks).pace(chunk(0, 12, 12, 25), lambda: 0)
    assert {4, 6} <= set(pace.ends)
    assert pace.ends[-1] == 12


def test_a_single_op_is_one_part():
    assert YieldPoints([40 * MS, 1], WAIT_NS).pace(chunk(0, 1, 40, 25), lambda: 0).ends == [1]


def test_a_chunk_that_has_to_run_to_its_end_is_one_part():
    assert YieldPoints([1 * MS] * 20, WAIT_NS).pace(chunk(2, 20, 18, 0), lambda: 0).ends == [20]


def test_a_chunk_as_fast_as_expected_runs_to_its_end():
    assert played([1] * 20, chunk(0, 20, 20, 20), 1.0) == (20, 20.0)


def test_a_chunk_slower_than_expected_stops_when_its_gap_ends():
    reached, ended_ms = played([1] * 20, chunk(0, 20, 20, 20), 1.4)
    assert 12 <= reached < 16
    assert ended_ms <= 20.8


@given(
    op_ms=st.lists(st.sampled_from([0.0, 0.2, 1.0, 3.0]), min_size=1, max_size=40),
    slowness=st.floats(0.5, 3.0),
    data=st.data(),
)
def test_parts_cover_the_chunk_in_order_and_no_more_runs_late_than_has_to(op_ms, slowness, data):
    start = data.draw(st.integers(0, len(op_ms) - 1))
    end = data.draw(st.integers(start + 1, len(op_ms)))
    work_ms = sum(op_ms[start:end]) or 1.0
    op_ms[start] += 0.0 if sum(op_ms[start:end]) else 1.0
    running = chunk(start, end, work_ms, int(work_ms) + 1)
    pace = YieldPoints([int(ms * MS) for ms in op_ms], WAIT_NS).pace(running, lambda: 0)
    assert pace.ends[-1] == end
    assert all(a < b for a, b in zip([start, *pace.ends], pace.ends, strict=False))
    reached, ended_ms = played(op_ms, running, slowness)
    if len(pace.ends) <= 2 or slowness <= 1.0:
        assert reached == end
    elif reached > pace.ends[1]:  # the first two parts are always handed out
        assert ended_ms <= running.until_ns / MS + 0.81
