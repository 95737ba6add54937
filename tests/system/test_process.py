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
        before = settings()
        with restored():
            os.environ["LP_NUM_THREADS"] = "1"
            os.environ.pop("HOME", None)
            give_over()
            begin_frames()
            gc.disable()
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
    assert {"environment", "switch_interval_s", "collects", "frozen"} <= set(changed)
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


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a standing on Linux")
def test_threads_that_a_library_keeps_become_ordinary_ones(run_python):
    assert run_python(
        """
        import json, os, threading
        from heimdall.system.priority import lower_priority, standing
        from heimdall.system.process import restored

        release, started = threading.Event(), threading.Event()

        def work():
            lower_priority(7)
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            started.set()
            release.wait()

        with restored():
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            started.wait()
        own, its = standing(threading.get_native_id()), standing(thread.native_id)
        release.set()
        # Raising a nice level again needs privileges; the cores need none.
        print(json.dumps(own.cores == its.cores and own.policy == its.policy))
        """
    )
