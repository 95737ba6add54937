"""What a run may change of the whole process, and that it is as before afterwards.

A program of its own (the command line) gives itself over to its frames. In somebody else's program
all of this belongs to that program, unless it asks for it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from heimdall.system import softgpu
from heimdall.system.priority import (
    Standing,
    become,
    first_in_line,
    precise_timers,
    standing,
    timer_slack_ns,
)


@dataclass(frozen=True)
class Settings:
    """What is process-wide, at one moment. ``threads``: cores, policy, priority and nice level of
    each, by its id (empty where the system does not tell)."""

    environment: dict[str, str]
    switch_interval_s: float
    collects: bool
    frozen: int
    cv2_threads: int
    cv2_log_level: int
    timer_slack_ns: int | None
    threads: dict[int, Standing]


def settings() -> Settings:
    """How the process is set at the moment."""
    import cv2

    return Settings(
        dict(os.environ),
        sys.getswitchinterval(),
        gc.isenabled(),
        gc.get_freeze_count(),
        cv2.getNumThreads(),
        cv2.utils.logging.getLogLevel(),
        timer_slack_ns(),
        {tid: found for tid in softgpu.thread_ids() if (found := standing(tid))},
    )


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Give everything process-wide back when the block ends, by an error too.

    Threads that libraries have started meanwhile, and keep, become ordinary ones on the cores
    of the calling thread.
    """
    before = settings()
    try:
        yield
    finally:
        _give_back(before)


def _give_back(before: Settings) -> None:
    import cv2

    for name in os.environ.keys() - before.environment.keys():
        del os.environ[name]
    for name, value in before.environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    sys.setswitchinterval(before.switch_interval_s)
    (gc.enable if before.collects else gc.disable)()
    if not before.frozen and gc.get_freeze_count():
        gc.unfreeze()
    cv2.setNumThreads(before.cv2_threads)
    cv2.utils.logging.setLogLevel(before.cv2_log_level)
    if before.timer_slack_ns is not None:
        timer_slack_ns(before.timer_slack_ns)
    own = before.threads.get(threading.get_native_id())
    for tid in softgpu.thread_ids():
        wanted = before.threads.get(tid, own)
        if wanted is not None and standing(tid) != wanted:
            become(tid, wanted)


def give_over() -> None:
    """Set the process for frames; the calling thread draws them. See ``restored``."""
    import cv2

    precise_timers()
    cv2.setNumThreads(1)  # pictures are small, and the cores have other work
    if "OPENCV_LOG_LEVEL" not in os.environ:
        # What OpenCV warns of when a source does not open, Heimdall says itself, in one line.
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)


def begin_frames() -> None:
    """The first frame is next: from now on nothing shall hold one up.

    What is alive now stays alive: keep the collector from walking it within a frame. It is not
    asked to collect first: 800 small objects are not worth 50 ms before the first frame.
    """
    gc.freeze()
    gc.enable()
    first_in_line()
