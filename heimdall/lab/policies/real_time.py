"""What Pantheon (MobiSys '24) and the policies it is compared with share: real-time requests in one
order, best effort below them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.in_order import InOrder, start_of, whole
from heimdall.vocabulary.enums import Priority

LOW = str(Priority.LOW)  # of best effort


class RealTime(InOrder):
    """The request of the lowest ``rank`` first; those of the same rank, and best effort (of low
    priority, below all others), first come first served. A real-time request whose deadline has
    passed is dropped: its answer would be worth nothing (section 5.1).

    ``whole_networks``: what has begun is not interrupted; best effort is, chunk by chunk: it comes
    from a GPU queue of low priority, which yields whatever decides about the others (section 2).
    """

    whole_networks = True

    @abstractmethod
    def rank(self, job: JobView) -> int:
        """Of a real-time request, when it comes."""

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        index = len(queue)
        if job.priority == LOW:
            return index
        rank = self.rank(job)
        while index and (queue[index - 1].priority == LOW or self.rank(queue[index - 1]) > rank):
            index -= 1
        return index

    def hopeless(self, job: JobView, now_ns: int) -> str:
        late = now_ns >= job.deadline_ns and job.priority != LOW
        return "its deadline has passed" if late else ""

    def order(self, view: View, now_ns: int) -> Sequence[JobView]:
        return self.uninterrupted(view.ready)

    def uninterrupted(self, queue: Sequence[JobView]) -> Sequence[JobView]:
        """Jobs that have begun come first, where only best effort is interrupted."""
        if self.whole_networks:
            for job in real_time(queue):
                if job.executed_ns:
                    return [job, *(other for other in queue if other is not job)]
        return queue

    def end(self, job: JobView, view: View) -> int:
        if self.whole_networks and job.priority != LOW:
            return whole(job)
        variant = self.variant(job)
        return job.costs[job.stage].block_end(start_of(job, variant) if variant else job.next_op)


def real_time(queue: Sequence[JobView]) -> list[JobView]:
    """The jobs that are not best effort, in the same order."""
    return [job for job in queue if job.priority != LOW]
