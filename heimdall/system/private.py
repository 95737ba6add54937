"""Folders that are this user's alone: what is kept in one is loaded and run, as compiled kernels.

Where users have no numbers (Windows), folders are taken as they are.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

_PROBE_BYTES = 1 << 20  # room for less would not do for one network
_UNMAPPED = 65534  # in a container: the owner of what belongs to users outside of it


class NotPrivateError(Exception):
    """Another user may put files into a folder; its text says how, and what to do."""


def prepare(folder: Path) -> None:
    """Make the folder unless it is there (``folder`` has no links in it), and keep others out.

    Raises NotPrivateError where others could have changed what is in it, and OSError where it
    cannot be made or written.
    """
    make(folder.parent, 0o755)
    make(folder)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    check(folder)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        with contextlib.suppress(OSError):  # of a file system without modes, or read-only
            folder.chmod(mode & 0o700)
    _write(folder)


def make(folder: Path, mode: int = 0o700) -> None:
    """Make a folder, and those above it that are missing, with that mode. Raises OSError."""
    for each in reversed([folder, *folder.parents]):
        if not each.exists():
            each.mkdir(mode, exist_ok=True)


def check(folder: Path) -> None:
    """Raises NotPrivateError where another user may write to a folder, or replace it."""
    if not hasattr(os, "geteuid"):
        return
    own, found = os.geteuid(), folder.stat()
    if found.st_uid != own:
        raise NotPrivateError(
            f"it belongs to {_user(found.st_uid)}, not to {_user(own)}; delete it, or take it over "
            "(chown -R) if you trust what is in it"
        )
    if found.st_mode & 0o022:
        raise NotPrivateError(
            f"others may write to it; delete it, or type `chmod -R go-w {folder}` if you trust "
            "what is in it"
        )
    for above in folder.parents:
        found = above.stat()
        if found.st_uid not in (0, own, _UNMAPPED):
            raise NotPrivateError(f"{above} belongs to {_user(found.st_uid)}; choose another place")
        if found.st_mode & 0o002 and not found.st_mode & stat.S_ISVTX:
            raise NotPrivateError(
                f"everybody may write to {above}; type `chmod o-w {above}`, or choose another place"
            )


def opener(name: str, flags: int) -> int:
    """For ``open``: a new file is for this user alone."""
    return os.open(name, flags, 0o600)


def _write(folder: Path) -> None:
    """Raises OSError where there is no room, or nothing may be written."""
    probe = folder / f".room-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(probe, "xb", buffering=0) as file:
            left = _PROBE_BYTES
            while left > 0:
                left -= file.write(bytes(left))
    finally:
        probe.unlink(missing_ok=True)


def _user(number: int) -> str:
    try:
        import pwd

        return f"user {pwd.getpwuid(number).pw_name}"
    except (ImportError, KeyError):
        return f"user {number}"
