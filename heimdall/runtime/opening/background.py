"""Processes beside the apps: one at a time of each kind of work, and they make room when asked.

A kind has a folder in the cache. A lock there belongs to the process that is at work, and the time
of a mark there tells when all work that was asked for before must end.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from heimdall.errors import ConfigError
from heimdall.system import paths, private

TUNING = "tuning"  # a kind: see that module


def folder(kind: str) -> Path:
    """The folder of a kind of work, which is made. Raises ConfigError and OSError."""
    found = paths.cache_dir() / kind
    private.make(found)
    return found


@contextlib.contextmanager
def alone(kind: str) -> Iterator[bool]:
    """Hold the lock for this kind of work; False: another process holds it. It goes with the
    process, however that ends. Raises ConfigError and OSError."""
    with open(folder(kind) / "background.lock", "ab", opener=private.opener) as file:
        yield _lock(file)


def interrupt(kind: str) -> None:
    """The processes that do this work shall end at once. Best effort."""
    with contextlib.suppress(OSError, ConfigError):
        if (paths.cache_dir() / kind / "background.lock").exists():
            mark, now_ns = folder(kind) / "interrupted", time.time_ns()
            mark.touch(mode=0o600)
            os.utime(mark, ns=(now_ns, now_ns))  # the system's own is some ms behind


def interrupted(kind: str, asked_ns: int) -> bool:
    """True if that has happened since the work was asked for, on the system's clock."""
    with contextlib.suppress(OSError):
        return (folder(kind) / "interrupted").stat().st_mtime_ns > asked_ns
    return False


def _lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
