from __future__ import annotations

from heimdall.lab.policies.prema import Prema, tokens_of


def first(queues, *jobs, now_ns=0):
    return Prema().select(queues.view(*jobs, idle=("gpu",)), now_ns).assignments[0]


def test_of_equals_the_shortest_runs_whole(queues):
    long, short = queues.costs({"gpu": (50, 50)}), queues.costs({"gpu": (5, 5)})
    chosen = first(queues, queues.request(1, long), queues.request(2, short))
    assert (chosen.job, chosen.end_op) == (2, 2)


def test_tokens_grow_with_waiting_as_a_multiple_of_its_own_time(queues):
    job = queues.request(1, queues.costs({"gpu": (100,)}), at_ns=50)
    assert tokens_of(job, 100, 50) == 3  # of a normal priority
    assert tokens_of(job, 100, 150) == 6
    assert tokens_of(job._replace(priority="high"), 100, 150) == 18
    assert tokens_of(job._replace(priority="low", executed_ns=100), 100, 150) == 1


def test_a_long_one_that_has_waited_for_a_level_more_goes_before_short_ones(queues):
    long = queues.request(1, queues.costs({"gpu": (100,)}))
    short = queues.costs({"gpu": (10,)})
    assert first(queues, long, queues.request(2, short, at_ns=199), now_ns=199).job == 2
    assert first(queues, long, queues.request(2, short, at_ns=200), now_ns=200).job == 1


def test_a_short_one_that_has_reached_the_level_too_is_first(queues):
    long = queues.request(1, queues.costs({"gpu": (100,)}))
    short = queues.request(2, queues.costs({"gpu": (10,)}), at_ns=150)
    assert first(queues, long, short, now_ns=200).job == 2
