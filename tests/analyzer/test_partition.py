"""Cutting networks into chunks (Heimdall, section 5.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.analyzer.partition import Chunk, partition, strategies
from heimdall.errors import ConfigError
from heimdall.vocabulary.plans import StagePlan

MS = 1_000_000


def costs(*op_ms, fallback=(), chunk_cost_ns=0):
    marked = tuple(index in fallback for index in range(len(op_ms)))
    return StagePlan(tuple(round(ms * MS) for ms in op_ms), marked, 0, chunk_cost_ns)


def ranges(chunks):
    return [(chunk.start, chunk.end) for chunk in chunks]


def test_ops_are_packed_until_the_gap_is_full():
    chunks = partition(costs(10, 10, 10, 10, 5), 30 * MS, margin_ns=0)
    assert chunks == [Chunk(0, 3, 30 * MS), Chunk(3, 5, 15 * MS)]


def test_margin_lets_a_chunk_exceed_the_gap_by_5_ms():
    assert ranges(partition(costs(20, 15, 20), 30 * MS)) == [(0, 2), (2, 3)]
    assert ranges(partition(costs(20, 15, 20), 30 * MS, margin_ns=4 * MS)) == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]


def test_cost_of_a_chunk_counts_against_the_gap():
    network = costs(10, 10, 10, chunk_cost_ns=MS)
    assert ranges(partition(network, 30 * MS, margin_ns=0)) == [(0, 2), (2, 3)]
    assert ranges(partition(network, 31 * MS, margin_ns=0)) == [(0, 3)]


def test_op_longer_than_the_gap_is_a_chunk_by_itself():
    assert ranges(partition(costs(1, 50, 1), 30 * MS)) == [(0, 1), (1, 2), (2, 3)]
    assert ranges(partition(costs(50), 30 * MS)) == [(0, 1)]


def test_fallback_ops_lie_inside_the_papers_chunks_and_each_run_is_waited_for():
    network = costs(1, 1, 9, 9, 1, fallback={2, 3}, chunk_cost_ns=5)
    assert partition(network, 30 * MS) == [Chunk(0, 5, 21 * MS + 10, fallback_ops=2)]
    assert partition(network, 20 * MS + 5, margin_ns=0) == [
        Chunk(0, 4, 20 * MS + 5, fallback_ops=2),
        Chunk(4, 5, MS + 5),
    ]


def test_fallback_ops_end_a_chunk_of_runs_and_form_a_range_of_their_own():
    chunks = partition(costs(1, 1, 9, 9, 1, fallback={2, 3}, chunk_cost_ns=5), 30 * MS, "runs")
    assert chunks == [
        Chunk(0, 2, 2 * MS + 5),
        Chunk(2, 4, 18 * MS, fallback_ops=2),
        Chunk(4, 5, MS + 5),
    ]
    assert [chunk.fallback for chunk in chunks] == [False, True, False]


@pytest.mark.parametrize("strategy", strategies())
def test_network_of_fallback_ops_only_has_no_gpu_chunk(strategy):
    chunks = partition(costs(1, 1, fallback={0, 1}), 30 * MS, strategy)
    assert chunks == [Chunk(0, 2, 2 * MS, fallback_ops=2)]
    assert chunks[0].fallback


def test_fixed_strategy_counts_ops_not_time():
    assert ranges(partition(costs(*[50] * 12), 30 * MS, "fixed")) == [(0, 5), (5, 10), (10, 12)]
    two = partition(costs(*[50] * 3, fallback={1}), 30 * MS, "fixed", ops_per_chunk=2)
    assert ranges(two) == [(0, 1), (1, 2), (2, 3)]


def test_whole_strategy_cuts_only_at_fallback_ops():
    assert ranges(partition(costs(*[50] * 4), MS, "whole")) == [(0, 4)]
    assert ranges(partition(costs(*[50] * 4, fallback={3}), MS, "whole")) == [(0, 3), (3, 4)]


def test_even_strategy_splits_long_networks_where_cutting_costs_least():
    network = StagePlan((3 * MS,) * 4, (False,) * 4, 0, 0, cut_ns=(0, 2 * MS, MS, MS))
    assert partition(network, 11 * MS, "even") == [Chunk(0, 2, 6 * MS), Chunk(2, 4, 7 * MS)]
    assert ranges(partition(network, 12 * MS, "even")) == [(0, 4)]
    assert ranges(partition(costs(50), MS, "even")) == [(0, 1)]


def test_unknown_strategy_lists_the_valid_ones():
    with pytest.raises(ConfigError, match="even, fixed, heimdall, runs"):
        partition(costs(1), MS, "optimal")


@pytest.mark.parametrize(
    ("gap_ns", "options"), [(0, {}), (-5, {}), (MS, {"margin_ns": -1}), (MS, {"ops_per_chunk": 0})]
)
def test_impossible_options_are_refused(gap_ns, options):
    with pytest.raises(ConfigError):
        partition(costs(1), gap_ns, **options)


def fewest(op_ns, limit):
    """The least number of chunks, by dynamic programming; a lone op always fits."""
    best = [0] + [len(op_ns)] * len(op_ns)
    for end in range(1, len(op_ns) + 1):
        for start in range(end):
            if end - start == 1 or sum(op_ns[start:end]) <= limit:
                best[end] = min(best[end], best[start] + 1)
    return best[-1]


@given(
    op_ns=st.lists(st.integers(0, 40), min_size=1, max_size=25),
    gap_ns=st.integers(1, 60),
    margin_ns=st.integers(0, 10),
    chunk_cost_ns=st.integers(0, 5),
)
def test_greedy_packing_gives_the_fewest_chunks(op_ns, gap_ns, margin_ns, chunk_cost_ns):
    network = StagePlan(tuple(op_ns), (False,) * len(op_ns), 0, chunk_cost_ns)
    chunks = partition(network, gap_ns, margin_ns=margin_ns)
    assert len(chunks) == fewest(op_ns, gap_ns + margin_ns - chunk_cost_ns)


@given(
    ops=st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=30),
    gap_ns=st.integers(1, 60),
    strategy=st.sampled_from(strategies()),
)
def test_chunks_cover_all_ops_in_order_and_only_papers_mix_processors(ops, gap_ns, strategy):
    network = StagePlan(tuple(ns for ns, _ in ops), tuple(mark for _, mark in ops), 0, 0)
    chunks = partition(network, gap_ns, strategy, margin_ns=0)
    covered = [op for chunk in chunks for op in range(chunk.start, chunk.end)]
    assert covered == list(range(len(ops)))
    for chunk in chunks:
        assert chunk.start < chunk.end
        marks = network.fallback[chunk.start : chunk.end]
        assert chunk.fallback_ops == sum(marks)
        assert strategy in ("heimdall", "even", "critical") or set(marks) == {chunk.fallback}
        assert chunk.ns == sum(network.op_ns[chunk.start : chunk.end])


def test_critical_cuts_where_one_tensor_is_alive_and_merges_light_chunks_into_heavy_ones():
    """Fig. 5: a light chunk is merged into the one before it, until the next heavy one."""
    op_ns = (9, 9, 1, 8, 8, 1, 1, 9)
    network = StagePlan(op_ns, (False,) * 8, 0, 0, critical=(2, 3, 5, 6, 7))
    chunks = partition(network, 1, "critical")
    assert [(each.start, each.end) for each in chunks] == [(0, 3), (3, 7), (7, 8)]


def test_critical_cuts_anywhere_where_nothing_is_known():
    chunks = partition(StagePlan((5, 5, 5), (False,) * 3, 0, 0), 1, "critical")
    assert [(each.start, each.end) for each in chunks] == [(0, 1), (1, 2), (2, 3)]
