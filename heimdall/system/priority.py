"""How soon the system lets a thread of this process run, and how punctually it wakes it.

Each function is for the calling thread but ``cores_awake``, and does nothing where the system has
no such thing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heimdall.system.softgpu import RT_PRIORITY, allowed_cores

_PR_SET_TIMERSLACK = 29
_PR_GET_TIMERSLACK = 30
_LATENCY_LIMIT = "/dev/cpu_dma_latency"  # Linux: holds while the file is open


def lower_priority(nice: int) -> None:
    """Give the calling thread the nice level ``nice`` (Linux, where it belongs to threads)."""
    if sys.platform == "linux":
        with contextlib.suppress(PermissionError):  # lowering the level again needs privileges
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


def in_background() -> None:
    """Let the calling thread run only when no other thread wants its core (Linux).

    A nice level alone is not enough beside the frame loop: the scheduler lets a running thread
    finish its slice of about 3 ms before one that wakes up, unless it is a background thread.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def on_any_core() -> None:
    """Let the calling thread run on every core of this process, a software GPU's among them."""
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setaffinity(0, allowed_cores())


def behind(pid: int, nice: int = 19) -> None:
    """Let a process of this user's, and what it starts, have what this process leaves of all cores
    (less strictly with a lower level than 19).

    A nice level counts among the processes of one session alone where the system groups those
    (Linux, ``sched_autogroup_enabled``): there the session itself must be nice.
    """
    with contextlib.suppress(AttributeError, OSError):  # not everywhere; it has ended
        os.setpriority(os.PRIO_PROCESS, pid, nice)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setaffinity(pid, allowed_cores())


def first_in_line() -> None:
    """Let the calling thread run as soon as it wakes up, where real time is permitted.

    For threads that work in short bursts; threads they start are normal ones.
    """
    if not _become_realtime(RT_PRIORITY + 1):  # the user's limit may be RT_PRIORITY
        _become_realtime(RT_PRIORITY)


def second_in_line() -> None:
    """``first_in_line`` for work that must not wait for other work, but may be interrupted by
    threads that are first in line (where the user's limit allows for that)."""
    _become_realtime(RT_PRIORITY)


def in_turn() -> None:
    """No longer first or second in line: take turns, with the thread's nice level."""
    with contextlib.suppress(AttributeError, OSError):
        # The flag, once set, stays: only the privileged may take it away.
        policy = os.SCHED_OTHER | (os.sched_getscheduler(0) & os.SCHED_RESET_ON_FORK)
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _become_realtime(priority: int) -> bool:
    try:
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except (AttributeError, OSError):  # not on this system; not for this user
        return False
    return True


@dataclass(frozen=True)
class Standing:
    """Where and how the system runs a thread: its cores, policy, real-time priority, nice level."""

    cores: frozenset[int]
    policy: int
    priority: int
    nice: int


def standing(tid: int) -> Standing | None:
    """The standing of a thread of this process; None where it has ended, or the system does not
    tell."""
    if sys.platform != "linux":
        return None
    try:
        return Standing(
            frozenset(os.sched_getaffinity(tid)),
            os.sched_getscheduler(tid),
            os.sched_getparam(tid).sched_priority,
            os.getpriority(os.PRIO_PROCESS, tid),
        )
    except OSError:
        return None


def become(tid: int, wanted: Standing) -> None:
    """Give a thread of this process that standing, as far as it is permitted."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setaffinity(tid, wanted.cores)
        with contextlib.suppress(OSError):
            os.sched_setscheduler(tid, wanted.policy, os.sched_param(wanted.priority))
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, tid, wanted.nice)


def timer_slack_ns(value: int | None = None) -> int | None:
    """By how much waits of the calling thread are rounded up; with a ``value``, set it first.
    None where the system has no such thing."""
    if sys.platform != "linux":
        return None
    try:
        prctl = ctypes.CDLL(None).prctl
        if value is not None:
            prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(value), 0, 0, 0)
        return int(prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0))
    except (OSError, AttributeError):
        return None


def precise_timers() -> None:
    """Let waits of the calling thread, and of threads it creates, end when they should.

    Linux rounds a wait up by 50 us (the timer slack) so as to wake less often. The interpreter
    lets a thread compute for 5 ms before another may run: too long within a 33 ms frame.
    """
    sys.setswitchinterval(0.0005)
    timer_slack_ns(1)


@contextlib.contextmanager
def cores_awake() -> Iterator[None]:
    """Keep every idle core from going to sleep inside this block, where that is permitted.

    A core that sleeps takes its time to wake up, in a virtual machine some 40 us: as long as a
    small layer of a network, between any two of which PoCL's workers wait for one another. It
    costs power (Linux; root, or access to ``/dev/cpu_dma_latency``).
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            limit = stack.enter_context(open(_LATENCY_LIMIT, "r+b", buffering=0))
            limit.write((0).to_bytes(4, sys.byteorder))  # microseconds
        yield
