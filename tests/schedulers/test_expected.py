from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heimdall.schedulers.expected import Ratio, StageCosts
from tests.stages import MS, make_stage


def test_a_range_is_a_difference_of_sums_plus_the_cost_of_cutting():
    costs = StageCosts(make_stage([1, 2, 3, 4], chunk_cost_ms=0.5))
    assert costs.gpu_ns(1, 3) == 5.5 * MS
    assert costs.left(0)[0] == 10.5 * MS
    assert costs.cpu_ns(0, 4) == 30 * MS
    assert costs.cpu_ns(0, 2) == 15 * MS


def test_fallback_ops_end_runs_and_cost_no_gpu_time():
    costs = StageCosts(make_stage([1, 2, 3, 4], fallback=[1], chunk_cost_ms=0.5))
    assert costs.run_end == [1, 2, 4, 4]
    assert costs.left(0)[0] == (1 + 7 + 2 * 0.5) * MS
    assert costs.fallback_ns(0, 4) == 2 * MS
    assert costs.longest(0, 100 * MS) == 1


def test_static_chunks_hold_fallback_ops_and_count_where_the_gpu_has_work():
    costs = StageCosts(make_stage([1] * 6, fallback=[3, 5], chunks=[(0, 2), (2, 5), (5, 6)]))
    assert costs.chunk_end == [2, 2, 5, 5, 5, 6]
    assert costs.chunks_left == [2, 2, 1, 1, 1, 0, 0]


def test_without_a_partition_a_run_is_a_chunk():
    costs = StageCosts(make_stage([1] * 4, fallback=[1], chunks=[]))
    assert costs.chunk_end == [1, 2, 4, 4]
    assert costs.chunks_left == [2, 1, 1, 1, 0]


def test_a_whole_chunk_waits_once_for_each_of_its_runs():
    costs = StageCosts(make_stage([1, 2, 3, 4, 5], fallback=[1], chunk_cost_ms=0.5))
    assert costs.whole_ns(0, 1) == 1.5 * MS
    assert costs.whole_ns(0, 2) == 3.5 * MS
    assert costs.whole_ns(0, 4) == (10 + 2 * 0.5) * MS
    assert costs.whole_ns(2, 5) == 12.5 * MS
    assert costs.whole_ns(3, 4) == 4.5 * MS


@given(
    ops=st.lists(st.integers(0, 50), min_size=1, max_size=30),
    left=st.integers(0, 500),
    cost=st.integers(0, 5),
    data=st.data(),
)
def test_the_longest_chunk_fits_and_one_more_op_would_not(ops, left, cost, data):
    off = data.draw(st.sets(st.integers(0, len(ops) - 1)))
    start = data.draw(st.integers(0, len(ops) - 1))
    costs = StageCosts(make_stage(ops, fallback=off, chunk_cost_ms=cost))
    assume(start not in off)
    end = costs.longest(start, left * MS)
    assert start <= end <= costs.run_end[start]
    if end > start:
        assert costs.gpu_ns(start, end) <= left * MS
    if end < costs.run_end[start]:
        assert costs.gpu_ns(start, end + 1) > left * MS


@given(
    ops=st.lists(st.integers(1, 20), min_size=2, max_size=20),
    left=st.integers(0, 300),
    cost=st.integers(0, 3),
    data=st.data(),
)
def test_a_chunk_that_goes_on_behind_fallback_ops_fits_with_them(ops, left, cost, data):
    off = data.draw(st.sets(st.integers(0, len(ops) - 1)))
    costs = StageCosts(make_stage(ops, fallback=off, chunk_cost_ms=cost))
    start = data.draw(st.integers(0, len(ops) - 1))
    assume(start not in off)
    end = costs.longest(start, left * MS)
    assume(end > start)
    hold = data.draw(st.sampled_from([0, 8, 10**6]))
    further = costs.through(start, end, left * MS, hold * MS)
    assert costs.whole_ns(start, further) <= left * MS
    if further > end:
        assert end == costs.run_end[start]
        assert further == len(ops) or further - 1 not in off, "it ends with what it is held for"
    more = further + 1
    while more < len(ops) and more - 1 in off:
        more += 1
    if further >= costs.run_end[start] and more <= len(ops) and hold > len(ops) * 20:
        assert costs.whole_ns(start, more) > left * MS


def test_expectation_follows_reality():
    costs = StageCosts(make_stage([5, 5]))
    for _ in range(40):
        costs.learn_gpu(0, 2, 20 * MS)
        costs.learn_cpu(15 * MS)
    assert costs.gpu_ns(0, 1) == pytest.approx(10 * MS, rel=0.01)
    assert costs.cpu_ns() == pytest.approx(15 * MS, rel=0.02)


def test_it_rises_faster_than_it_falls_and_an_outlier_counts_little():
    up, down, outlier = Ratio(), Ratio(), Ratio()
    up.learn(150, 100)
    down.learn(50, 100)
    outlier.learn(100_000, 100)
    assert up.value - 1 > 1 - down.value
    assert outlier.value == pytest.approx(1.6)


def test_a_short_chunk_teaches_less_than_a_whole_network():
    short, whole = (StageCosts(make_stage([1] * 10)) for _ in range(2))
    short.learn_gpu(0, 2, 4 * MS)
    whole.learn_gpu(0, 10, 20 * MS)
    assert 1 < short.gpu_ratio.value < whole.gpu_ratio.value
