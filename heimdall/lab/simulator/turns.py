"""A GPU that cannot be preempted, and a driver that serves its queues in turns or by rank.

Section 3.2.2 of the paper: threads enqueue kernels within microseconds, the driver runs them in
batches; a thread back from an op on the CPU waits until all others have had their batch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from heimdall.lab.simulator.agenda import Agenda


class _Run:
    """Consecutive ops in a queue, as prefix sums of their times."""

    __slots__ = ("next_op", "sums", "then")

    def __init__(self, op_ns: Sequence[int], then: Callable[[int], None]) -> None:
        self.sums = [0, *accumulate(op_ns)]
        self.next_op = 0
        self.then = then

    def batch(self, service: Service) -> int:
        """Take as many ops as are served at once; returns their time."""
        sums, start = self.sums, self.next_op
        most = len(sums) if service.most_ops is None else start + service.most_ops + 1
        end = bisect_right(sums, sums[start] + service.batch_ns, start + 1, min(most, len(sums)))
        self.next_op = max(end - 1, start + 1)
        return sums[self.next_op] - sums[start]


@dataclass(frozen=True)
class Service:
    """What is next, and for how long: the queue of the lowest rank (0 where ``ranks`` has none),
    of equal ones that which has waited longest, has a batch of at most ``batch_ns`` and at most
    ``most_ops`` ops (what may be outstanding in a queue), and at least one."""

    batch_ns: int
    most_ops: int | None = None
    ranks: Mapping[str, float] = field(default_factory=dict)

    def next(self, waiting: Mapping[str, object]) -> str:
        """One of the queues, which are in the order in which they came."""
        return min(waiting, key=lambda queue: self.ranks.get(queue, 0.0))


class TurnTakingGpu:
    """Queues that have their turns by a ``service``, a batch each time.

    ``noise`` gives a factor for each batch; ``switch_ns`` is lost from one queue to another;
    ``ran(queue, start_ns, end_ns)`` hears of every batch.
    """

    def __init__(
        self,
        agenda: Agenda[Callable[[int], None]],
        *,
        service: Service,
        switch_ns: int,
        noise: Callable[[], float],
        ran: Callable[[str, int, int], None],
    ) -> None:
        self._agenda, self._noise, self._ran = agenda, noise, ran
        self._service, self._switch_ns = service, switch_ns
        self._waiting: dict[str, _Run] = {}  # by queue, in the order of their turns
        self._busy = False
        self._last = ""

    def submit(
        self, queue: str, op_ns: Sequence[int], now_ns: int, then: Callable[[int], Any]
    ) -> None:
        """Enqueue ops (a queue holds one run at a time); ``then(now_ns)`` when they have run."""
        self._waiting[queue] = _Run(op_ns, then)
        if not self._busy:
            self._turn(now_ns)

    def _turn(self, now_ns: int) -> None:
        """Give the queue that is next its batch."""
        queue = self._service.next(self._waiting)
        run = self._waiting.pop(queue)
        took_ns = int(run.batch(self._service) * self._noise())
        if queue != self._last:
            took_ns += self._switch_ns
        self._busy, self._last = True, queue
        self._ran(queue, now_ns, now_ns + took_ns)
        self._agenda.add(now_ns + took_ns, lambda at_ns: self._ended(queue, run, at_ns))

    def _ended(self, queue: str, run: _Run, now_ns: int) -> None:
        done = run.next_op == len(run.sums) - 1
        if not done:
            self._waiting[queue] = run
        self._busy = False
        if self._waiting:
            self._turn(now_ns)
        if done:
            run.then(now_ns)
