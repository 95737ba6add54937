"""The kernel's record of which thread had a core."""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
import time

import pytest

from benchmarks import switches
from benchmarks.switches import TimeUsed, time_used, watched
from heimdall.errors import DeviceError

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc and perf events are Linux's")
NO_THREAD = 2**22 + 1  # above all thread numbers


class Worker:
    """A thread that works when told, and sleeps in between."""

    def __init__(self):
        self.told: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.spans: list[tuple[int, int]] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.told.get():
            began_ns = time.perf_counter_ns()
            sum(range(20_000))
            self.spans.append((began_ns, time.perf_counter_ns()))
            self.done.put(None)

    def work(self, times):
        for _ in range(times):
            self.told.put(True)
            self.done.get()
            time.sleep(0.001)  # it falls asleep


@pytest.fixture
def worker():
    made = Worker()
    yield made
    made.told.put(False)
    made.thread.join()


@linux
def test_a_thread_has_a_core_while_it_works_and_none_while_it_sleeps(worker):
    worker.work(1)
    try:
        with watched([worker.thread.native_id]) as stints:
            worker.spans.clear()
            worker.work(5)
    except DeviceError as error:
        pytest.skip(str(error))
    assert {stint.tid for stint in stints} == {worker.thread.native_id}
    assert {stint.core for stint in stints} <= os.sched_getaffinity(0)
    assert all(stint.ns > 0 for stint in stints)
    assert len(stints) >= 5
    ends = itertools.pairwise(stints)
    assert all(one.end_ns <= other.start_ns for one, other in ends)
    for began_ns, ended_ns in worker.spans:
        within = [s for s in stints if s.start_ns < ended_ns and s.end_ns > began_ns]
        assert within
        assert within[0].start_ns <= began_ns
        assert within[-1].end_ns >= ended_ns
    assert any(not stint.preempted for stint in stints)


@linux
def test_threads_that_may_not_be_watched_are_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(switches, "_CALLS", {})
    with pytest.raises(DeviceError, match="records no switches"), watched([1]):
        pass


@linux
def test_a_thread_that_has_ended_cannot_be_watched():
    with pytest.raises(DeviceError, match="no switches of thread"), watched([NO_THREAD]):
        pass
    assert time_used(NO_THREAD) is None


@linux
def test_what_a_thread_has_used_adds_up(worker):
    worker.work(1)
    before = time_used(worker.thread.native_id)
    if before is None:
        pytest.skip("this kernel has no schedstat")
    worker.work(5)
    used = time_used(worker.thread.native_id).since(before)
    assert used.ran_ns > 0
    assert used.gave_up >= 5
    assert used.waited_ns >= 0
    assert used.preempted >= 0
    assert used.since(used) == TimeUsed(0, 0, 0, 0)
