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

from heimdall.system.softgpu import RT_PRIORITY

_PR_SET_TIMERSLACK = 29
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


def first_in_line() -> None:
    """Let the calling thread run as soon as it wakes up, where real time is permitted.

    For threads that work in short bursts; threads they start are normal ones.
    """
    if not _become_realtime(RT_PRIORITY + 1):  # the user's limit may be RT_PRIORITY
        _become_realtime(RT_PRIORITY)


def second_in_line() -> None:
    """The same for work that must not wait for other work, but may be interrupted by threads that
    are first in line (where the user's limit allows for that)."""
    _become_realtime(RT_PRIORITY)


def _become_realtime(priority: int) -> bool:
    try:
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except (AttributeError, OSError):  # not on this system; not for this user
        return False
    return True


def precise_timers(switch_interval_s: float = 0.0005) -> None:
    """Let waits of the calling thread, and of threads it creates, end when they should.

    Linux rounds a wait up by 50 us (the timer slack) so as to wake less often. The interpreter
    lets a thread compute for 5 ms before another may run: too long within a 33 ms frame.
    """
    sys.setswitchinterval(switch_interval_s)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)


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
