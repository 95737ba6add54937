from __future__ import annotations

from heimdall.lab.policies.rt_a import RtA


def served(policy, queues, jobs):
    """The job of the next turn; its block has run then."""
    waiting = [job for job in jobs if job.next_op < job.costs[0].ops]
    chosen = policy.select(queues.view(*waiting, idle=("gpu",)), 0).assignments[0]
    job = next(job for job in jobs if job.id == chosen.job)
    assert chosen.end_op == job.next_op + 1  # a block is one op here
    jobs[jobs.index(job)] = job._replace(next_op=chosen.end_op)
    return job.id


def test_a_round_keeps_all_through_the_same_share(queues):
    four, two = queues.costs({"gpu": (9,) * 4}), queues.costs({"gpu": (5,) * 2})
    jobs = [queues.request(4, four), queues.request(2, two)]
    policy = RtA()
    assert [served(policy, queues, jobs) for _ in range(6)] == [4, 2, 4, 4, 2, 4]


def test_who_comes_during_a_round_waits_for_its_end(queues):
    long, short = queues.costs({"gpu": (9,) * 3}), queues.costs({"gpu": (1,)})
    jobs = [queues.request(1, long)]
    policy = RtA()
    assert served(policy, queues, jobs) == 1
    jobs += [queues.request(2, short), queues.request(3, long)]
    assert [served(policy, queues, jobs) for _ in range(3)] == [1, 1, 3]
    assert [served(policy, queues, jobs) for _ in range(3)] == [3, 2, 3]
