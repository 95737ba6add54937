"""What a run may change of the whole process, and that it is as before afterwards.

A program of its own (the command line) gives itself over to its frames. In another program
all of this belongs to that program, unless it asks for it; and what that program sets meanwhile is
its own: only what was set here is given back, and only while it was not set again.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import cv2

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


@dataclass(frozen=True)
class Change:
    """One thing that was set for frames: what it was ``before``, and what is ``ours``."""

    before: Any
    ours: Any


@dataclass
class _Record:
    """What was set since ``restored`` began, by the names of Settings. ``standing``: that of the
    threads before the first of it; ``placed``: theirs when frames began."""

    thread: int = field(default_factory=threading.get_native_id)
    changes: dict[str, Change] = field(default_factory=dict)
    standing: dict[int, Standing] | None = None
    placed: dict[int, Standing] | None = None

    def note(self, was: Settings, now: Settings) -> None:
        for name in _PUT:
            before, ours = getattr(was, name), getattr(now, name)
            if before != ours:
                earlier = self.changes.get(name)
                if earlier and _is_still(name, before, earlier.ours):
                    before = earlier.before
                self.changes[name] = Change(before, ours)
        if self.standing is None:
            self.standing = was.threads


_PUT: dict[str, Callable[[Any], object]] = {
    "switch_interval_s": sys.setswitchinterval,
    "collects": lambda on: (gc.enable if on else gc.disable)(),
    "frozen": lambda count: None if count else gc.unfreeze(),  # all or nothing
    "cv2_threads": cv2.setNumThreads,
    "cv2_log_level": cv2.utils.logging.setLogLevel,
    "timer_slack_ns": timer_slack_ns,
}
_record = _Record()


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """When the block ends, by an error too, give back what ``give_over``, ``begin_frames`` and the
    software GPU have set in it. Without the first two nothing is touched.

    Threads that libraries have started meanwhile, and keep, become ordinary ones on the cores
    of the thread that began the block.
    """
    global _record
    outer, own = _record, _Record()
    _record = own
    try:
        yield
    finally:
        _record = outer
        _give_back(own)


def _give_back(record: _Record) -> None:
    if record.standing is None:
        return
    now = settings()
    for name, change in record.changes.items():
        if name == "timer_slack_ns" and record.thread != threading.get_native_id():
            continue  # it is a thread's own
        if _is_still(name, getattr(now, name), change.ours):
            _PUT[name](change.before)
    placed = now.threads if record.placed is None else record.placed
    for tid, found in now.threads.items():
        wanted = _wanted(tid, found, record.standing, placed, record.thread)
        if wanted != found:
            become(tid, wanted)


def _is_still(name: str, now: Any, ours: Any) -> bool:
    """True if a setting is as it was set. Of objects that were frozen some may have been freed
    since."""
    return bool(0 < now <= ours if name == "frozen" else now == ours)


def _wanted(
    tid: int,
    found: Standing,
    before: dict[int, Standing],
    placed: dict[int, Standing],
    thread: int,
) -> Standing:
    """What a thread shall be that is now as ``found``."""
    if tid in before and tid in placed:
        was, ours = vars(before[tid]), vars(placed[tid])
        mine = {name for name in was if was[name] != ours[name] == getattr(found, name)}
        return replace(found, **{name: was[name] for name in mine})
    own = before.get(thread)
    if own is None:
        return found
    python = {each.native_id for each in threading.enumerate()}
    if tid in softgpu.gpu_thread_ids() or tid not in python:
        return own
    # The host's: it has the cores of the thread that started it, unless it chose its own.
    started_on = placed[thread].cores if thread in placed else own.cores
    return replace(found, cores=own.cores) if found.cores == started_on else found


@contextlib.contextmanager
def _noted() -> Iterator[None]:
    was = settings()
    try:
        yield
    finally:
        _record.note(was, settings())


def give_over() -> None:
    """Set the process for frames; the calling thread draws them. See ``restored``."""
    with _noted():
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
    with _noted():
        gc.freeze()
        gc.enable()
        first_in_line()
    _record.placed = settings().threads
