"""CPU cores whose work takes longer and fluctuates beside other work (section 5.1, Fig. 9)."""

from __future__ import annotations

import random
from collections.abc import Callable


def noise_source(draw: random.Random, spread: float) -> Callable[[], float]:
    """Random factors around 1 with a standard deviation of about ``spread`` (log-normal)."""
    if spread <= 0:
        return lambda: 1.0
    return lambda: draw.lognormvariate(-spread * spread / 2, spread)


class Cores:
    """``count`` cores. Beside n others at work, work takes ``1 + contention * n`` times as long
    (memory and caches are shared), and more when there are fewer cores than work."""

    def __init__(self, count: int, contention: float, noise: Callable[[], float]) -> None:
        self._count, self._contention, self._noise = count, contention, noise
        self._ends: list[int] = []
        self.busy_ns = 0

    def end_ns(self, start_ns: int, work_ns: int) -> int:
        """When work that takes ``work_ns`` alone, and begins at ``start_ns``, is done."""
        self._ends = [end for end in self._ends if end > start_ns]
        others = len(self._ends)
        slower = 1.0 + self._contention * others
        if others >= self._count:
            slower *= (others + 1) / self._count
        took_ns = int(work_ns * slower * self._noise())
        self._ends.append(start_ns + took_ns)
        self.busy_ns += took_ns
        return start_ns + took_ns

    def shared_end_ns(self, start_ns: int, work_ns: int) -> int:
        """The end where a thread on each core does its part of the work, at best."""
        self._ends = [end for end in self._ends if end > start_ns]
        slower = 1.0 + self._contention * (self._count - 1)
        turns = 1 + len(self._ends) / self._count  # of a core: this thread's, and the others'
        took_ns = int(work_ns / self._count * slower * turns * self._noise())
        self._ends += [start_ns + took_ns] * self._count
        self.busy_ns += int(self._count * took_ns / turns)
        return start_ns + took_ns


class Threads:
    """Worker threads that serve one queue in order of arrival, as ``system.workers`` does."""

    def __init__(self, cores: Cores, count: int = 1) -> None:
        self._cores = cores
        self._free_ns = [0] * count

    def end_ns(self, now_ns: int, work_ns: int) -> int:
        """When work that is queued now is done."""
        first = min(range(len(self._free_ns)), key=self._free_ns.__getitem__)
        end_ns = self._cores.end_ns(max(now_ns, self._free_ns[first]), work_ns)
        self._free_ns[first] = end_ns
        return end_ns
