"""Threads become as urgent as their work is, where the system permits."""

from __future__ import annotations

import os
import sys

import pytest

from heimdall.system import priority as urgency
from heimdall.system.softgpu import RT_PRIORITY

linux = pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority on Linux only")


@linux
def test_a_worker_can_lower_its_own_priority_and_wake_precisely(run_python):
    result = run_python("""
        import json, os, sys, threading
        from heimdall.system.priority import lower_priority, precise_timers
        levels = []
        def work():
            lower_priority(5)
            levels.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        before = os.getpriority(os.PRIO_PROCESS, 0)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        precise_timers()
        after = os.getpriority(os.PRIO_PROCESS, 0)
        slack = open(f"/proc/{os.getpid()}/timerslack_ns").read()
        print(json.dumps([levels, before, after, sys.getswitchinterval(), int(slack)]))
    """)
    levels, before, after, interval, slack = result
    assert levels == [5]
    assert before == after
    assert interval <= 0.001
    assert slack == 1


@linux
def test_what_is_first_in_line_may_interrupt_what_is_second(run_python):
    permitted, first, second = run_python("""
        import json, os, threading
        from heimdall.system import softgpu, priority as urgency
        seen = []
        def work(become):
            become()
            policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
            seen.append([policy == os.SCHED_RR, os.sched_getparam(0).sched_priority])
        for each in (urgency.first_in_line, urgency.second_in_line):
            thread = threading.Thread(target=work, args=(each,))
            thread.start()
            thread.join()
        print(json.dumps([softgpu._realtime_permitted(), *seen]))
    """)
    assert first[0] == second[0] == permitted
    assert second[1] <= first[1]


@linux
def test_a_user_whose_limit_is_the_lowest_priority_is_still_first_in_line(monkeypatch):
    asked = []

    def refuse_more(tid, policy, param):
        asked.append(param.sched_priority)
        if param.sched_priority > RT_PRIORITY:
            raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse_more)
    urgency.first_in_line()
    assert asked == [RT_PRIORITY + 1, RT_PRIORITY]


def test_cores_are_kept_awake_while_the_request_is_open(tmp_path, monkeypatch):
    requests = tmp_path / "cpu_dma_latency"
    requests.write_bytes(b"")
    monkeypatch.setattr(urgency, "_LATENCY_LIMIT", str(requests))
    opened = []

    def open_and_tell(*args, **kwargs):
        opened.append(open(*args, **kwargs))  # noqa: SIM115 (the block is to close it)
        return opened[-1]

    monkeypatch.setattr(urgency, "open", open_and_tell, raising=False)
    with urgency.cores_awake():
        assert requests.read_bytes() == bytes(4)  # a latency of 0 us, as four bytes
        assert not opened[0].closed  # the system forgets the request with the file
    assert opened[0].closed


def test_cores_may_sleep_where_there_is_nothing_to_ask(tmp_path, monkeypatch):
    requests = tmp_path / "cpu_dma_latency"
    monkeypatch.setattr(urgency, "_LATENCY_LIMIT", str(requests))
    ran = []
    with urgency.cores_awake():
        ran.append(True)
    assert ran
    assert not requests.exists()  # as root it could have been made, an ordinary file in /dev
