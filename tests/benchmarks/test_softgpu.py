"""What is read out of records of kernels and of switches."""

from __future__ import annotations

from benchmarks.softgpu import NETWORKS, RENDERING, taking_turns, turns
from benchmarks.switches import Stint

MS = 1_000_000


def kernels(queue, *spans, queued=0):
    return [(start * MS, end * MS, queue, queued * MS) for start, end in spans]


def test_kernels_of_two_queues_that_alternate():
    found = taking_turns([*kernels("a", (0, 2), (4, 6), (8, 10)), *kernels("b", (2, 4), (6, 8))])
    assert found["alternating"] == 1.0
    assert found["contested"] == 4
    assert found["kept_ms"] == {"p50": 2.0, "max": 2.0}


def test_a_queue_that_is_emptied_before_the_next():
    found = taking_turns([*kernels("a", (0, 2), (2, 4), (4, 6)), *kernels("b", (6, 8))])
    assert (found["contested"], found["alternating"]) == (3, 0.333)
    assert found["kept_ms"] == {"p50": 6.0, "max": 6.0}


def test_without_waiters_there_is_no_turn_to_take():
    alone = kernels("a", (0, 2), (2, 4), (4, 6))
    found = taking_turns([*alone, *kernels("b", (6, 8), queued=5)])
    assert (found["kernels"], found["contested"]) == (4, 1)
    assert found["kept_ms"] == {"p50": 2.0, "max": 2.0}
    assert taking_turns(alone)["kept_ms"] == {"p50": None, "max": None}


def test_threads_keep_the_core_until_the_others_run():
    def stint(tid, start, end, preempted=False):
        return Stint(tid, 0, start * MS, end * MS, preempted)

    stints = [
        stint(1, 0, 60),
        stint(1, 61, 101, preempted=True),
        stint(2, 101, 106),
        stint(1, 107, 110),
    ]
    found = turns(stints, {1: "python", 2: "llvmpipe-0"})
    assert found[NETWORKS] == {
        "turns": 2,
        "ran_ms": {"p50": 51.5, "max": 100.0},
        "ended_by_preemption": 1,
    }
    assert found[RENDERING]["ran_ms"] == {"p50": 5.0, "max": 5.0}
    assert found[RENDERING]["ended_by_preemption"] == 0
