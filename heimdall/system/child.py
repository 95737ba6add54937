"""Programs that a driver may end: run beside this one, watched, and outlived.

A driver is foreign code in this process. It may abort, call ``exit``, hang in its
compiler or jump to nowhere, and no exception tells. What was never tried here is therefore tried
in a child first, which writes down each step before it takes it. A child also computes beside
this process's interpreter lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from heimdall.errors import DeviceError
from heimdall.system.priority import behind

LIMIT_S = 60.0  # a step: a large kernel takes a slow compiler a second or two
_MARK = "heimdall:"  # drivers write to standard output too
_LOOK_S = 0.2  # so often it is looked whether the child is to go on


@dataclass(frozen=True)
class Outcome:
    """What a child reported, by step, and where and how it ended before it was done."""

    found: Mapping[str, Any]
    step: str = ""
    ended: str = ""  # empty: it has done everything

    @property
    def broken(self) -> bool:
        """True if it ended before its first step by what a package raises that cannot be imported
        or used: that says nothing of a driver."""
        return not self.step and any(f"({kind}" in self.ended for kind in _OF_PACKAGES)


BROKEN = "a package in this Python is broken"  # why a child ended before its first step
_OF_PACKAGES = ("ImportError", "ModuleNotFoundError", "AttributeError", "SystemError", "TypeError")
STOPPED = "it was stopped"  # how a child ended that was not to go on
Hear = Callable[[Mapping[str, Any]], object]
Give = Callable[[], str | None]


def report(message: Mapping[str, Any]) -> None:
    """Tell the parent, in the child: ``{"step": name}``, then ``{"found": name, "value": ...}``,
    and ``{"done": True}`` at the end."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(message)}\n")
    sys.stdout.flush()


def ask() -> str | None:
    """Ask the parent what to do next, in the child: one line, or None for nothing more."""
    report({"ask": True})
    return sys.stdin.readline().strip() or None


def watch(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit_s: float = LIMIT_S,
    *,
    hear: Hear | None = None,
    give: Give | None = None,
    stop: threading.Event | None = None,
    yields: bool = False,
) -> Outcome:
    """Run a program that reports, until it is done, ends, or is silent for ``limit_s`` seconds in
    which it had a core, or needed none (Linux; elsewhere, for so long).

    ``hear`` is told each report as it comes, and ``give`` called when the program asks what to do
    next. ``stop``: once it is set, the program is ended. ``yields``: it gets what this process
    leaves of all cores. Raises DeviceError when it cannot be started at all.
    """
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if give else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise DeviceError(f"drivers cannot be tried ({error}): {command[0]}") from error
        try:
            if yields:
                behind(process.pid)
            lines = _Lines(process, limit_s, stop or threading.Event())
            return _follow(process, lines, complaints, hear or (lambda message: None), give)
        finally:
            _end(process)


class _SilenceError(Exception):
    """A child says nothing any more."""


class _Lines:
    """What a child writes, line by line."""

    def __init__(
        self, process: subprocess.Popen[str], limit_s: float, stop: threading.Event
    ) -> None:
        assert process.stdout is not None
        self.limit_s, self._stop, self._pid = limit_s, stop, process.pid
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(
            target=self._read, args=(process.stdout,), name="child", daemon=True
        ).start()

    def _read(self, pipe: IO[str]) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed, because it was silent for too long
            for line in pipe:
                self._lines.put(line)
        self._lines.put("")

    def next(self) -> str:
        """The next one; empty at the end. Raises _SilenceError, which says why there is none."""
        since_s, waited_s = time.monotonic(), _waited_s(self._pid)
        while self._silent_s(since_s, waited_s) < self.limit_s:
            if self._stop.is_set():
                raise _SilenceError(STOPPED)
            with contextlib.suppress(queue.Empty):
                return self._lines.get(timeout=min(_LOOK_S, self.limit_s))
        raise _SilenceError(_hangs(self.limit_s))

    def _silent_s(self, since_s: float, waited_s: float) -> float:
        """For how long, without what others have kept it from running: one that yields on a busy
        machine gets a hundredth of a core, and does not hang."""
        silent_s = time.monotonic() - since_s
        return silent_s if silent_s < self.limit_s else silent_s + waited_s - _waited_s(self._pid)


def _waited_s(pid: int) -> float:
    """For how long that thread of a process which has waited longest for a core has done so; 0
    where the system does not tell."""
    waited_ns = [0]
    with contextlib.suppress(OSError):  # it has ended; only Linux has it
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                waited_ns.append(int((task / "schedstat").read_text().split()[1]))
    return max(waited_ns) / 1e9


def _follow(
    process: subprocess.Popen[str],
    lines: _Lines,
    complaints: IO[bytes],
    hear: Hear,
    give: Give | None,
) -> Outcome:
    found: dict[str, Any] = {}
    step = ""
    try:
        while line := lines.next():
            if not line.startswith(_MARK):
                continue
            try:
                message = _read(line)
            except ValueError:
                if line.endswith("\n"):
                    return Outcome(found, step, f"its report cannot be read: {line.strip()[:80]!r}")
                break  # half a line: it was killed while it wrote that
            if "done" in message:
                return Outcome(found)
            if "ask" in message:
                _answer(process, give)
                continue
            hear(message)
            if "step" in message:
                step = message["step"]
            else:
                found[message["found"]] = message["value"]
        status = process.wait(lines.limit_s)
    except _SilenceError as silence:
        return Outcome(found, step, str(silence))
    except subprocess.TimeoutExpired:  # it has closed its output
        return Outcome(found, step, _hangs(lines.limit_s))
    return Outcome(found, step, _how(status) + _last_words(complaints))


def _read(line: str) -> dict[str, Any]:
    """A report. Raises ValueError for what is none."""
    message = json.loads(line[len(_MARK) :])
    known = isinstance(message, dict) and (
        message.keys() & {"done", "ask", "step"} or {"found", "value"} <= message.keys()
    )
    if not known:
        raise ValueError("no report")
    return dict(message)


def _answer(process: subprocess.Popen[str], give: Give | None) -> None:
    assert process.stdin is not None
    line = give() if give else None
    with contextlib.suppress(OSError):  # it has ended, which its output tells
        process.stdin.write(f"{line or ''}\n")
        process.stdin.flush()


def _hangs(limit_s: float) -> str:
    return f"it hangs: no answer within {limit_s:g} s"


def _how(status: int) -> str:
    if status >= 0:
        return f"it ended the process with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"it ended the process by {name}"


def _last_words(complaints: IO[bytes]) -> str:
    """The last line that looks like a reason, which is often the only one a driver gives."""
    complaints.seek(0)
    lines = complaints.read()[-4000:].decode(errors="replace").splitlines()
    said = [line.strip() for line in lines if line.strip()]
    return f" ({said[-1][:200]})" if said else ""


def _end(process: subprocess.Popen[str]) -> None:
    """End a child, with the compilers and linkers that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was not read any more
                pipe.close()
