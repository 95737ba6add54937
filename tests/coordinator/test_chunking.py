from __future__ import annotations

import pytest

from heimdall.coordinator.chunking import Elastic, Static
from heimdall.coordinator.gap import Gap
from heimdall.schedulers.expected import StageCosts

MS = 1_000_000
USUAL = 27 * MS


def end_op(chunking, costs, next_op, left_ms, fresh=False):
    return chunking.end_op(costs, next_op, int(left_ms * MS), USUAL, fresh)


def test_elastic_takes_the_longest_run_that_fits(sim):
    costs = StageCosts(sim.stage([4] * 10, chunk_cost_ms=1))
    assert end_op(Elastic(0), costs, 0, 27) == 6
    assert end_op(Elastic(0), costs, 8, 27) == 10
    assert end_op(Elastic(0), costs, 0, 4.9) == 0
    assert end_op(Elastic(2 * MS), costs, 0, 27) == 7
    assert end_op(Elastic(-3 * MS), costs, 0, 27) == 5


def test_an_op_longer_than_a_gap_runs_alone_when_the_gap_is_whole(sim):
    costs = StageCosts(sim.stage([1, 40, 1]))
    assert end_op(Elastic(0), costs, 1, 27, fresh=False) == 1
    assert end_op(Elastic(0), costs, 1, 27, fresh=True) == 2
    assert end_op(Elastic(0), costs, 0, 27, fresh=True) == 1


def test_an_op_that_fits_a_usual_gap_waits_for_one(sim):
    costs = StageCosts(sim.stage([26]))
    assert end_op(Elastic(0), costs, 0, 25, fresh=True) == 0


def test_the_tail_of_a_gap_is_not_spent_on_cutting(sim):
    costs = StageCosts(sim.stage([0.3] * 10, chunk_cost_ms=1))
    assert end_op(Elastic(0), costs, 0, 1.7) == 0  # 0.6 ms of work for 1 ms of cutting
    assert end_op(Elastic(0), costs, 0, 2.3) == 4
    assert end_op(Elastic(0), costs, 9, 1.7) == 10  # it ends the network: worth it


def test_static_takes_the_chunk_of_the_partition(sim):
    costs = StageCosts(sim.stage([10] * 6, chunks=[(0, 2), (2, 5), (5, 6)]))
    static = Static(5 * MS)
    assert [end_op(static, costs, op, 27, fresh=True) for op in (0, 2, 5)] == [2, 5, 6]
    assert end_op(static, costs, 2, 27) == 5  # 30 ms exceed the gap by less than the margin
    assert end_op(static, costs, 2, 24) == 2
    assert static.gaps(3, 60 * MS, USUAL) == 3


def test_static_starts_one_chunk_a_gap_when_it_opens():
    gap = Gap(33 * MS)
    assert Static(5 * MS).one_a_gap
    gap.open(0, USUAL, busy=False)
    assert not gap.has_its_chunk(opening=True)
    assert gap.has_its_chunk(opening=False)
    gap.chunk_started(0)
    assert gap.has_its_chunk(opening=True)
    gap.open(33 * MS, 60 * MS, busy=True)
    assert not gap.has_its_chunk(opening=False)  # the last gap's chunk has ended just now


@pytest.mark.parametrize(("left_ms", "gaps"), [(1, 1), (27, 1), (28, 2), (81, 3)])
def test_elastic_counts_remaining_work_in_gaps(left_ms, gaps):
    assert Elastic(0).gaps(99, left_ms * MS, USUAL) == gaps


def test_lone_latency_includes_rendering():
    assert Elastic(0).lone_ns(2, 40 * MS, USUAL, 33 * MS) == 52 * MS
    assert Static(0).lone_ns(2, 40 * MS, USUAL, 33 * MS) == 66 * MS
