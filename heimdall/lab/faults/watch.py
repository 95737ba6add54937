"""What happens in a run, noted: in its own process, at public places that every run passes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import psutil

from heimdall.lab.faults.moment import THREAD, Moment
from heimdall.render import Status
from heimdall.runtime.execution.runs import Result
from heimdall.runtime.loop.base import BaseRun
from heimdall.runtime.loop.frame_loop import FrameLoop, FrameTimes
from heimdall.runtime.telemetry.report import Reporter
from heimdall.vocabulary.events import Action, Drop, Prepare

_LIBRARY = "/pytools/"  # pyopencl's own cache


def after(owner: type, name: str, hear: Callable[..., object]) -> None:
    """From now on ``hear(found, *args)`` is called after a method, with what that returned."""
    method = getattr(owner, name)

    def called(*args: Any, **more: Any) -> Any:
        found = method(*args, **more)
        hear(found, *args)
        return found

    setattr(owner, name, called)


def watch(moment: Moment) -> None:
    """Note frames, jobs, results and what the overlay says, and tell the moment of the warm-up."""
    note, known = moment.note, {"message": ""}

    def presented(times: FrameTimes, loop: FrameLoop, *_: Any) -> None:
        if times.number == 0:
            note("fps", 1e9 / loop.interval_ns)
        note("frame")

    def acted(_: None, run: BaseRun, action: Action) -> None:
        if isinstance(action, Prepare) and action.stage == 0 and not action.anew:
            note("begun", action.job, action.dnn)
        elif isinstance(action, Drop):
            note("end", action.job, action.dnn, "again" if action.again else "lost")

    def delivered(_: None, run: BaseRun, result: Result) -> None:
        note("end", result.finish.job, result.dnn, "result")

    def failed(_: None, run: BaseRun, job: int, dnn: str, error: str) -> None:
        note("end", job, dnn, "lost")

    def told(status: Status, *_: Any) -> None:
        if status.message and status.message != known["message"]:
            note("told", status.message.partition("\n")[0])
        known["message"] = status.message

    def warm(*_: Any) -> None:
        note("warm")
        moment.warm()

    after(FrameLoop, "presented", presented)
    after(BaseRun, "acted", acted)
    after(BaseRun, "delivered", delivered)
    after(BaseRun, "failed", failed)
    after(Reporter, "status", told)
    after(Reporter, "warm", warm)


class Standing:
    """The threads, processes and open files that there are when this is made."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._processes = set(_children())
        self._files = set(_open_files())

    def left(self, moment: Moment) -> list[str]:
        """Those that have come since, and remain; not what the fault itself holds for ever."""
        threads = set(threading.enumerate()) - self._threads - set(moment.held)
        processes = set(_children()) - self._processes
        return [
            *(f"thread {each.name}" for each in threads if each.name != THREAD),
            *(f"process {each}" for each in sorted(processes)),
            *(f"handle {each}" for each in sorted(set(_open_files()) - self._files)),
        ]


def _children() -> list[str]:
    return [f"{each.pid} {each.name()}" for each in psutil.Process().children(recursive=True)]


def _open_files() -> list[str]:
    """Files and sockets by what they lead to; what drivers keep open (devices, memory, libraries)
    is none of them. Linux alone tells."""
    found = []
    folder = "/proc/self/fd"
    for number in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            target = os.readlink(f"{folder}/{number}")
        except OSError:  # the one by which the folder was read
            continue
        if target.startswith("socket:") or (os.path.isfile(target) and _LIBRARY not in target):
            found.append(target)
    return found
