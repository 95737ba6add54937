"""The policies under which the system may run the software GPU's threads.

``rr``: SCHED_RR, where threads of one priority take turns in slices of equal length, the system's
(100 ms on most). ``fifo``: SCHED_FIFO, where a thread goes on until it has nothing to do.
``normal``: the system's usual one. Nothing else preempts the first two, as nothing preempts work on
a phone's GPU; which of them is truest to one depends on the GPU's driver, so none is chosen by what
comes of it. docs/laboratory/drivers.md shows what they do.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from heimdall.errors import ConfigError

_SLICE_MS = Path("/proc/sys/kernel/sched_rr_timeslice_ms")


@dataclass(frozen=True)
class GpuPolicy:
    """A scheduling policy."""

    name: str

    @property
    def realtime(self) -> bool:
        return self.name != "normal"

    @property
    def number(self) -> int:
        """The system's own."""
        policies = {"rr": os.SCHED_RR, "fifo": os.SCHED_FIFO, "normal": os.SCHED_OTHER}
        return policies[self.name]

    def __str__(self) -> str:
        return self.name

    def describe(self) -> str:
        """For people: ``SCHED_RR, slices of 100 ms``."""
        if self.name != "rr":
            return {"fifo": "SCHED_FIFO", "normal": "SCHED_OTHER"}[self.name]
        slice_ms = slice_of_system_ms()
        return "SCHED_RR" + (f", slices of {slice_ms} ms" if slice_ms else "")


RR, FIFO, NORMAL = GpuPolicy("rr"), GpuPolicy("fifo"), GpuPolicy("normal")


def parse_policy(text: str) -> GpuPolicy:
    """``rr``, ``fifo`` or ``normal``; ConfigError for anything else."""
    for policy in (RR, FIFO, NORMAL):
        if text == policy.name:
            return policy
    hint = ""
    if re.fullmatch(r"rr-[0-9]+", text):  # it was an option once, and stayed after a killed run
        hint = f"; slices are the whole system's: set their length in {_SLICE_MS}, as root"
    raise ConfigError(f"GPU policy {text!r}: must be rr, fifo or normal{hint}")


def slice_of_system_ms() -> int | None:
    """How long the slices of SCHED_RR are now (None where the system does not tell)."""
    try:
        return int(_SLICE_MS.read_text())
    except (OSError, ValueError):
        return None
