"""Views with literal values, for testing policies without a coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heimdall.schedulers import JobView, View


@dataclass
class Still:
    """A moment of which everything is known beforehand. Ops up to the seventh fit."""

    free: dict[str, int]
    on: Sequence[JobView] = ()
    off: Sequence[JobView] = ()

    def free_ns(self):
        return self.free

    def running(self):
        return self.on

    def away(self):
        return self.off

    def preparing(self):
        return ()

    def longest(self, job, processor, hold_ns=0):
        return 7

    def fitting(self, jobs, processor):
        return {job.id: 7 for job in jobs}


def still_view(ready, idle, free_ns, handoff_ns=None, running=()) -> View:
    """These jobs wait, where nothing is drawn."""
    return View(ready, idle, 33_000_000, 0, "", True, handoff_ns or {}, Still(free_ns, running))
