"""SPLIT (ICPP '23, section 3.4): the queue is kept in the order of least average response ratio."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.in_order import InOrder, lone_ns, whole

# The paper has no figures for "particularly high density" and "an excessive number of requests of
# the same type". With these, scenarios 1-6 have about the violations that they have when networks
# are always split, and long requests far less jitter.
DENSE, ALIKE = 5, 4


class ResponseRatio(InOrder):
    """A request that comes overtakes its neighbour in the queue, again and again, as long as that
    lowers the sum of both response ratios, latency over lone latency (Eq. 3, Algorithm 1); never
    one of its own type. Networks run block by block, and the first in the queue has the next
    block: so all blocks of a request preempt together.

    ``elastic``: where many wait for each processor, or many of one type, a network runs on to its
    end, and saves what splitting costs (section 3.3).

    Corrections of Algorithm 1 as it is printed. Its loop starts at the head of the queue, while a
    newcomer, and the waiting time of line 4, are at the tail: here it starts there. Line 12 adds to
    a neighbour's waiting its own time instead of the newcomer's. What both have waited, and alpha,
    are on both sides of line 14 and cancel: what is left is an order by length, first come first
    served within a type, that nothing protects long requests in.
    """

    name = "response-ratio"
    reason = "response ratio"
    partition = "even"
    elastic = True

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        own_ns = lone_ns(job)
        for index in range(len(queue), 0, -1):
            ahead = queue[index - 1]
            if ahead.dnn == job.dnn:
                return index
            # The newcomer's ratio falls by what is left of its neighbour over its own time, the
            # neighbour's grows by the newcomer's time over its own: gain / own <= own / ahead.
            if ahead.remaining_ns * lone_ns(ahead) <= own_ns * own_ns:
                return index
        return 0

    def end(self, job: JobView, view: View) -> int:
        if self.elastic and _crowded(job, view):
            return whole(job)
        return job.costs[job.stage].block_end(job.next_op)


class AlwaysSplit(ResponseRatio):
    """SPLIT, block by block however many wait: what elastic splitting is compared with."""

    name = "response-ratio-always"
    elastic = False


def _crowded(job: JobView, view: View) -> bool:
    waiting, processors = view.ready, len(view.processors)
    if len(waiting) >= DENSE * processors:
        return True
    if len(waiting) < ALIKE * processors:
        return False
    return sum([other.dnn == job.dnn for other in waiting]) >= ALIKE * processors
