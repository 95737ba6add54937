from __future__ import annotations

from heimdall.schedulers.fcfs import Fcfs


def test_the_oldest_runs_to_its_end_whatever_its_blocks(queues):
    long, short = queues.costs({"gpu": (50, 50)}), queues.costs({"gpu": (1,)})
    view = queues.view(queues.request(1, long), queues.request(2, short), idle=("gpu",))
    (assignment,) = Fcfs().select(view, 0).assignments
    assert (assignment.job, assignment.end_op) == (1, 2)


def test_who_comes_is_last(queues):
    costs = queues.costs({"gpu": (1,)})
    queue = [queues.request(id, costs) for id in range(3)]
    assert Fcfs().place(queues.request(7, costs), queue, 0) == 3
