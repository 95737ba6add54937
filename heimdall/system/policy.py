"""The policies under which the system may run the software GPU's threads.

``rr``: SCHED_RR, where threads of one priority take turns in slices of equal length, the system's
(100 ms on most) or, as ``rr-30``, of so many ms. ``fifo``: SCHED_FIFO, where a thread goes on until
it has nothing to do. ``normal``: the system's usual one. Nothing else preempts the first two, as
nothing preempts work on a phone's GPU; which of them is truest to one depends on the GPU's driver,
so none is chosen by what comes of it. docs/laboratory/drivers.md shows what they do.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heimdall.errors import ConfigError, DeviceError

_SLICE_MS = Path("/proc/sys/kernel/sched_rr_timeslice_ms")
_LONGEST_MS = 1000


@dataclass(frozen=True)
class GpuPolicy:
    """A scheduling policy; ``slice_ms``: of ``rr``, where it is not to be the system's."""

    name: str
    slice_ms: int | None = None

    @property
    def realtime(self) -> bool:
        return self.name != "normal"

    @property
    def number(self) -> int:
        """The system's own."""
        policies = {"rr": os.SCHED_RR, "fifo": os.SCHED_FIFO, "normal": os.SCHED_OTHER}
        return policies[self.name]

    def __str__(self) -> str:
        return self.name if self.slice_ms is None else f"{self.name}-{self.slice_ms}"

    def describe(self) -> str:
        """For people: ``SCHED_RR, slices of 100 ms``."""
        if self.name != "rr":
            return {"fifo": "SCHED_FIFO", "normal": "SCHED_OTHER"}[self.name]
        slice_ms = self.slice_ms or slice_of_system_ms()
        return "SCHED_RR" + (f", slices of {slice_ms} ms" if slice_ms else "")

    def check(self) -> None:
        """Raise DeviceError where the system does not let its slices be set."""
        if self.slice_ms in (None, slice_of_system_ms()) or os.access(_SLICE_MS, os.W_OK):
            return
        raise DeviceError(
            f"GPU policy {self}: the length of slices cannot be set here ({_SLICE_MS} is not "
            "writable): run as root, or leave the number out"
        )

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Give slices their length inside this block, for the whole system; then, unless it was
        changed meanwhile, the one before. Raises DeviceError where that fails."""
        before = slice_of_system_ms()
        if self.slice_ms in (None, before):
            yield
            return
        _set(self.slice_ms)
        try:
            yield
        finally:
            if slice_of_system_ms() == self.slice_ms and before is not None:
                with contextlib.suppress(OSError):
                    _SLICE_MS.write_text(str(before))


RR, FIFO, NORMAL = GpuPolicy("rr"), GpuPolicy("fifo"), GpuPolicy("normal")


def parse_policy(text: str) -> GpuPolicy:
    """``rr``, ``rr-N`` (slices of N ms), ``fifo`` or ``normal``; ConfigError for anything else."""
    found = re.fullmatch(r"rr(?:-([1-9][0-9]{0,3}))?|fifo|normal", text)
    slice_ms = int(found[1]) if found and found[1] else None
    if found is None or (slice_ms or 0) > _LONGEST_MS:
        raise ConfigError(
            f"GPU policy {text!r}: must be rr, rr-N (slices of 1 to {_LONGEST_MS} ms), fifo or "
            "normal"
        )
    return GpuPolicy(text.partition("-")[0], slice_ms)


def slice_of_system_ms() -> int | None:
    """How long the slices of SCHED_RR are now (None where the system does not tell)."""
    try:
        return int(_SLICE_MS.read_text())
    except (OSError, ValueError):
        return None


def _set(slice_ms: int | None) -> None:
    try:
        _SLICE_MS.write_text(str(slice_ms))
    except OSError as error:
        raise DeviceError(f"slices of {slice_ms} ms cannot be set: {error}") from error
