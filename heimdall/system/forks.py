"""Processes that are forked from one in which drivers or sessions are open.

A fork has its parent's memory, and of its threads the one that forked. Drivers of OpenCL and OpenGL
wait there for threads that do not exist, without end; so do a session's calls, and what frees them.
Here each of them is an error at once.
"""

from __future__ import annotations

import ctypes
import os
from weakref import WeakSet

from heimdall.errors import AppError, DeviceError

_INSTEAD = (
    'start such a process with multiprocessing.get_context("spawn"), or fork it before the parent '
    "has drawn or run networks"
)
_begun = 0  # the process in which drivers were first used; 0: none yet
_owned: WeakSet[Owned] = WeakSet()


def begin() -> None:
    """Drivers are used in this process from now on. Raises DeviceError in a fork of one in which
    they were used already."""
    global _begun
    check()
    _begun = os.getpid()


def forked() -> bool:
    """True in a fork of a process in which drivers were used."""
    return _begun not in (0, os.getpid())


def check() -> None:
    """Raise DeviceError in a fork of a process in which drivers were used."""
    if forked():
        raise DeviceError(
            "this process was forked from one that had drawn or run networks, and the threads of "
            f"its drivers do not exist here: {_INSTEAD}"
        )


class Owned:
    """What belongs to the process that opened it, once ``own`` was called."""

    _process_id = 0

    def own(self) -> None:
        """It is this process's."""
        self._process_id = os.getpid()
        _owned.add(self)

    @property
    def foreign(self) -> bool:
        """True in a fork of the process that it belongs to."""
        return self._process_id not in (0, os.getpid())

    def check_process(self, what: str) -> None:
        """Raise AppError in a fork of the process that it belongs to."""
        if self.foreign:
            raise AppError(
                f"{what} belongs to the process that opened it, and this one is a fork of that: "
                f"{_INSTEAD}"
            )


def _keep() -> None:
    """In a fork: what the parent has open is not freed here, not even at the end of the
    process, for that would wait for its threads."""
    for each in list(_owned):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_keep)
