"""Round robin: a baseline of Band's code (MobiSys '22)."""

from __future__ import annotations

from heimdall.lab.policies.subgraphs import SubgraphPolicy
from heimdall.schedulers.base import Assignment, Choice, JobView, View


class RoundRobin(SubgraphPolicy):
    """Each idle processor has the first job that it supports, for as long as it supports it, fast
    or slow; what is left goes to the tail (4.3.1)."""

    name = "round-robin"

    def select(self, view: View, now_ns: int) -> Choice | None:
        waiting, chosen = list(view.ready), []
        for processor in view.idle:
            for job in waiting:
                end_op = _supported(job, processor)
                if end_op > job.next_op:
                    chosen.append(Assignment(job.id, end_op, processor))
                    waiting.remove(job)
                    break
        return Choice(tuple(chosen), "its turn") if chosen else None


def _supported(job: JobView, processor: str) -> int:
    """The end of the last unit in a row that a processor supports, from a job's next op on."""
    costs, start = job.costs[job.stage], job.next_op
    ranges = costs.on(processor)
    if ranges is None:
        return start
    supported_to = ranges.supported_to(start)
    if supported_to == costs.ops:
        return supported_to
    end = start
    while (longer := costs.block_end(end)) <= supported_to:
        end = longer
    return end
