"""Which thread had a core, and when: the kernel's own record of switches (Linux, perf events).

For threads of this process, and without privileges unless the system forbids perf events
altogether. ``time_used`` only needs /proc, and tells sums.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from heimdall.errors import DeviceError

_CALLS = {"x86_64": 298, "aarch64": 241}  # perf_event_open
_ATTR_BYTES, _PAGES = 136, 256  # 1 MiB of records a thread: 32,000 switches
_SOFTWARE, _DUMMY = 1, 9
_SAMPLE = 1 << 1 | 1 << 2 | 1 << 7  # with each record: thread, time, core
_EXCLUDE_KERNEL, _ALL_WITH_SAMPLE, _USE_CLOCK, _SWITCHES = 1 << 5, 1 << 18, 1 << 25, 1 << 26
_LOST, _SWITCH = 2, 14
_OUT, _PREEMPTED = 1 << 13, 1 << 14
_HEAD = 1024  # in the first page: how far the kernel has written, and how far we have read
_CLOCK_OFFSET = 92


@dataclass(frozen=True)
class Stint:
    """A thread had a core, from then to then by ``time.perf_counter_ns``. ``preempted``: it had
    not done yet."""

    tid: int
    core: int
    start_ns: int
    end_ns: int
    preempted: bool

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class TimeUsed:
    """A thread's time until now: on a core, ready for one without having one, and how often it gave
    its core up by itself, and was made to."""

    ran_ns: int
    waited_ns: int
    gave_up: int
    preempted: int

    def since(self, before: TimeUsed) -> TimeUsed:
        """What has been added."""
        return TimeUsed(
            self.ran_ns - before.ran_ns,
            self.waited_ns - before.waited_ns,
            self.gave_up - before.gave_up,
            self.preempted - before.preempted,
        )


def time_used(tid: int) -> TimeUsed | None:
    """The time used by a thread of this process; None where it has ended, or the system does not
    tell."""
    folder = Path(f"/proc/self/task/{tid}")
    try:
        ran_ns, waited_ns, _ = map(int, (folder / "schedstat").read_text().split())
        lines = (folder / "status").read_text().splitlines()
        counts = dict(line.split(":", 1) for line in lines if "ctxt_switches" in line)
        gave_up = int(counts["voluntary_ctxt_switches"])
        return TimeUsed(ran_ns, waited_ns, gave_up, int(counts["nonvoluntary_ctxt_switches"]))
    except (OSError, ValueError, KeyError):
        return None


@contextlib.contextmanager
def watched(tids: Iterable[int]) -> Iterator[list[Stint]]:
    """Record the stints of these threads; the list is filled when the block ends.

    Raises DeviceError where the system does not record switches, and, at the end, when there were
    too many.
    """
    found: list[Stint] = []
    with contextlib.ExitStack() as stack:
        records = [stack.enter_context(_record(tid)) for tid in tids]
        yield found
        for ring in records:
            found += _stints(ring)
        found.sort(key=lambda stint: stint.start_ns)


@contextlib.contextmanager
def _record(tid: int) -> Iterator[mmap.mmap]:
    attr = bytearray(_ATTR_BYTES)
    struct.pack_into("=IIQQQ", attr, 0, _SOFTWARE, _ATTR_BYTES, _DUMMY, 1, _SAMPLE)
    flags = _EXCLUDE_KERNEL | _ALL_WITH_SAMPLE | _USE_CLOCK | _SWITCHES
    struct.pack_into("=Q", attr, 40, flags)
    struct.pack_into("=i", attr, _CLOCK_OFFSET, time.CLOCK_MONOTONIC)
    call = _CALLS.get(platform.machine())
    if call is None or not hasattr(os, "sched_getaffinity"):
        raise DeviceError(f"{platform.system()} on {platform.machine()} records no switches")
    libc = ctypes.CDLL(None, use_errno=True)
    raw = (ctypes.c_char * _ATTR_BYTES).from_buffer(attr)
    handle = libc.syscall(call, raw, tid, -1, -1, 0)
    if handle < 0:
        number = ctypes.get_errno()
        hint = ": be root, or set kernel.perf_event_paranoid to 2"
        raise DeviceError(
            f"the system records no switches of thread {tid} ({os.strerror(number)})"
            + (hint if number in (errno.EPERM, errno.EACCES) else "")
        )
    try:
        with mmap.mmap(handle, (1 + _PAGES) * mmap.PAGESIZE) as ring:
            yield ring
    finally:
        os.close(handle)


def _stints(ring: mmap.mmap) -> Iterator[Stint]:
    """Pairs of switches, in and out."""
    began: tuple[int, int] | None = None
    for kind, flags, tid, at_ns, core in _records(ring):
        if kind == _LOST:
            raise DeviceError("too many switches to record: watch for a shorter time")
        if not flags & _OUT:
            began = at_ns, core
        elif began is not None:
            yield Stint(tid, began[1], began[0], at_ns, bool(flags & _PREEMPTED))
            began = None


def _records(ring: mmap.mmap) -> Iterator[tuple[int, int, int, int, int]]:
    """(type, flags, thread, time, core) of each."""
    head, tail = struct.unpack_from("=QQ", ring, _HEAD)
    data = ring[mmap.PAGESIZE :]
    # Nothing is read meanwhile: the kernel stops at the end instead of overwriting the beginning.
    while tail < min(head, len(data)):
        kind, flags, size = struct.unpack_from("=IHH", data, tail)
        if kind == _SWITCH:
            _, tid, at_ns, core, _ = struct.unpack_from("=IIQII", data, tail + 8)
            yield kind, flags, tid, at_ns, core
        elif kind == _LOST:
            yield kind, 0, 0, 0, 0
        tail += size
