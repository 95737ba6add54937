"""SPLIT's Algorithm 1, as corrected, and its elastic splitting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.lab.policies.response_ratio import ALIKE, DENSE, AlwaysSplit, ResponseRatio
from heimdall.schedulers.in_order import lone_ns


@pytest.fixture(scope="module")
def ask(queues):
    """A request of a model that takes ``blocks`` alone; ``left``: of how many blocks."""

    def make(id, *blocks, dnn="", left=None, at_ns=0):
        left = len(blocks) if left is None else left
        job = queues.request(
            id, queues.costs({"gpu": blocks}), dnn=dnn, next_op=len(blocks) - left, at_ns=at_ns
        )
        return job._replace(remaining_ns=sum(blocks[len(blocks) - left :]))

    return make


def placed(job, queue):
    return ResponseRatio().place(job, queue, 0)


def test_a_short_one_overtakes_long_ones_and_stops_behind_shorter_ones(ask):
    queue = [ask(1, 5), ask(2, 20), ask(3, 30)]
    assert placed(ask(9, 10), queue) == 1
    assert placed(ask(9, 2), queue) == 0
    assert placed(ask(9, 40), queue) == 3


def test_it_starts_at_the_tail_not_as_printed_at_the_head(ask):
    """From the head it would be stopped by the shorter one there, and end up before it."""
    assert placed(ask(9, 10), [ask(1, 5), ask(2, 7)]) == 2


def test_its_own_type_is_never_overtaken(ask):
    queue = [ask(1, 30, dnn="long"), ask(2, 10, dnn="short"), ask(3, 30, dnn="long")]
    assert placed(ask(9, 10, dnn="short"), queue) == 2
    assert placed(ask(9, 10, dnn="other"), [ask(1, 10, dnn="short")]) == 1  # equal: no gain


def test_who_is_almost_done_is_not_overtaken(ask):
    """30 of the newcomer's 100 over its own 100, against 100 over the neighbour's 300."""
    long = (100, 100, 100)
    assert placed(ask(9, 100), [ask(1, *long, left=1)._replace(remaining_ns=30)]) == 1
    assert placed(ask(9, 100), [ask(1, *long, left=1)]) == 0


def test_how_long_anybody_has_waited_changes_nothing(ask):
    """The terms cancel: nothing protects who is long."""
    for at_ns in (0, -10_000):
        assert placed(ask(9, 2), [ask(1, 20, at_ns=at_ns)]) == 0


def ratios(queue):
    """The sum of response ratios but for what all have waited, which no order changes."""
    waiting = 0
    total = 0.0
    for job in queue:
        waiting += job.remaining_ns
        total += waiting / lone_ns(job)
    return total


@given(st.data())
def test_no_exchange_of_the_newcomer_with_a_neighbour_lowers_the_sum_of_ratios(ask, data):
    times = st.integers(1, 100)
    queue: list[Any] = []
    for id in range(data.draw(st.integers(0, 6))):
        job = ask(id, data.draw(times))
        queue.insert(placed(job, queue), job)
    new = ask(99, data.draw(times))
    index = placed(new, queue)
    for other in (index - 1, index + 1):
        if 0 <= other <= len(queue):
            here = ratios([*queue[:index], new, *queue[index:]])
            assert here <= ratios([*queue[:other], new, *queue[other:]]) + 1e-9


def next_end(queues, policy, *jobs):
    (assignment,) = policy.select(queues.view(*jobs, idle=("gpu",)), 0).assignments
    assert assignment.job == jobs[0].id
    return assignment.end_op


def test_networks_run_block_by_block(queues, ask):
    assert next_end(queues, ResponseRatio(), ask(1, 5, 5, 5), ask(2, 9)) == 1


def test_they_run_on_to_their_end_where_many_wait(queues, ask):
    jobs = [ask(id, 5, 5, 5) for id in range(DENSE)]
    assert next_end(queues, ResponseRatio(), *jobs[1:]) == 1
    assert next_end(queues, ResponseRatio(), *jobs) == 3
    assert next_end(queues, AlwaysSplit(), *jobs) == 1


def test_they_run_on_to_their_end_where_many_of_their_type_wait(queues, ask):
    alike = [ask(id, 5, 5, 5, dnn="long") for id in range(ALIKE)]
    assert next_end(queues, ResponseRatio(), *alike[1:], ask(9, 1, dnn="short")) == 1
    assert next_end(queues, ResponseRatio(), *alike) == 3
