"""What policies share that run groups of ops of several jobs together, by plans made before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from heimdall.schedulers.base import Assignment, JobView
from heimdall.vocabulary.ranges import as_ranges

Group = tuple[int, tuple[int, ...]]  # the number of a member of a plan, and its ops
Stages = Sequence[Sequence[Group]]
Member = tuple[str, int]  # a model, and the number of one of its blocks
Stager = Callable[[tuple[Member, ...]], Stages]


def assignments(
    stages: Stages, jobs: Mapping[int, JobView], ends: Mapping[int, int], processor: str
) -> tuple[Assignment, ...]:
    """The groups of those members of a plan that have a job, by member, each job as far as its end.
    A job that is alone runs its ops one after the other, as always."""
    if len(jobs) == 1:
        ((member, job),) = jobs.items()
        if all(sum(each == member for each, _ in groups) <= 1 for groups in stages):
            return (Assignment(job.id, ends[member], processor),)
    found, stage = list[Assignment](), 0
    for groups in stages:
        kept = [(member, ops) for member, ops in groups if member in jobs]
        for number, (member, ops) in enumerate(kept, 1):
            ranges = as_ranges(ops)
            end_op = ranges[-1][1]
            found.append(Assignment(jobs[member].id, end_op, processor, "", number, stage, ranges))
        stage += bool(kept)
    return tuple(found)


def variance(counts: Sequence[float]) -> float:
    """The variance of how many requests wait for each model."""
    mean = sum(counts) / len(counts)
    return sum((count - mean) ** 2 for count in counts) / len(counts)
