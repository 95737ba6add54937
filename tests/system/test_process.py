"""What a run changes of the process comes back, in a process of its own each time."""

from __future__ import annotations

import sys

import pytest


def test_everything_that_was_changed_is_given_back(run_python):
    changed, same = run_python(
        """
        import gc, json, os, sys, threading
        from heimdall.system.process import begin_frames, give_over, restored, settings
        from heimdall.system.priority import lower_priority

        release = threading.Event()
        other = threading.Thread(target=release.wait, daemon=True)
        other.start()
        gc.disable()
        before = settings()
        with restored():
            give_over()
            begin_frames()
            during = settings()
        after = settings()
        release.set()
        names = [name for name in vars(before) if name != "threads"]
        changed = [name for name in names if getattr(before, name) != getattr(during, name)]
        same = [name for name in names if getattr(before, name) == getattr(after, name)]
        same += ["threads"] * (before.threads == after.threads)
        print(json.dumps([changed, same]))
        """
    )
    assert {"switch_interval_s", "collects", "frozen"} <= set(changed)
    assert set(same) == {
        "environment", "switch_interval_s", "collects", "frozen", "cv2_threads",
        "cv2_log_level", "timer_slack_ns", "threads",
    }  # fmt: skip


def test_an_error_inside_gives_back_as_well(run_python):
    assert run_python(
        """
        import json, sys
        from heimdall.system.process import give_over, restored
        before = sys.getswitchinterval()
        try:
            with restored():
                give_over()
                raise OSError("in between")
        except OSError:
            pass
        print(json.dumps(sys.getswitchinterval() == before))
        """
    )


def test_what_others_set_meanwhile_stays(run_python):
    assert run_python(
        """
        import gc, json, os, sys
        import cv2
        from heimdall.system.process import begin_frames, give_over, restored, settings
        with restored():
            give_over()
            begin_frames()
            os.environ["MINE"] = "1"
            cv2.setNumThreads(2)
            sys.setswitchinterval(0.25)
            gc.disable()
        after = settings()
        print(json.dumps([after.environment["MINE"], after.cv2_threads, after.switch_interval_s,
                          after.collects, after.frozen]))
        """
    ) == ["1", 2, 0.25, False, 0]


def test_where_nothing_was_given_over_nothing_is_given_back(run_python):
    assert run_python(
        """
        import gc, json, os, sys
        from dataclasses import replace
        from heimdall.system.process import restored, settings
        with restored():
            os.environ["MINE"] = "1"
            sys.setswitchinterval(0.25)
            gc.freeze()
            if sys.platform == "linux":
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            during = settings()
        after = settings()
        alive = 0 < after.frozen <= during.frozen  # some may have been freed
        print(json.dumps(alive and replace(after, frozen=during.frozen) == during))
        """
    )


def test_a_second_beginning_of_frames_remembers_what_was_before_the_first(run_python):
    assert run_python(
        """
        import json
        from heimdall.system.process import begin_frames, give_over, restored, settings
        before = settings()
        with restored():
            give_over()
            begin_frames()
            more = [[] for _ in range(1000)]
            begin_frames()
        print(json.dumps(settings() == before))
        """
    )


THREADS = """
    import _thread, json, os, threading
    from heimdall.system.priority import lower_priority, standing
    from heimdall.system.process import begin_frames, give_over, restored

    release = threading.Event()

    def work(started, tids, change):
        if change:
            lower_priority(7)
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        tids.append(threading.get_native_id())
        started.set()
        release.wait()

    def start(change, starter):
        started, tids = threading.Event(), []
        starter(work, (started, tids, change))
        started.wait()
        return tids[0]

    def python(function, arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()

    library = _thread.start_new_thread  # threading does not know of it
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a standing on Linux")
def test_threads_that_a_library_keeps_become_ordinary_ones(run_python):
    assert run_python(
        THREADS
        + """
    with restored():
        give_over()
        begin_frames()
        tid = start(True, library)
    own, its = standing(threading.get_native_id()), standing(tid)
    release.set()
    # Raising a nice level again needs privileges; the cores need none.
    print(json.dumps(own.cores == its.cores and own.policy == its.policy))
    """
    )


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a standing on Linux")
def test_the_hosts_threads_keep_what_they_chose_and_get_back_what_they_did_not(run_python):
    assert run_python(
        THREADS
        + """
    def move(tid, cores):
        os.sched_setaffinity(tid, cores)

    everywhere = os.sched_getaffinity(0)
    first = {min(everywhere)}
    placed, chosen = start(False, python), start(False, python)
    with restored():
        give_over()
        for tid in (0, placed, chosen):  # as the software GPU does
            move(tid, {max(everywhere)})
        begin_frames()
        move(chosen, first)
        inherited, new = start(False, python), start(True, python)
        move(new, first)
    found = [standing(tid) for tid in (0, placed, chosen, inherited, new)]
    release.set()
    expected = [everywhere, everywhere, first, everywhere, first]
    print(json.dumps([set(each.cores) for each in found] == expected and found[-1].nice == 7))
    """
    )
