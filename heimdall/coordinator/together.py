"""What a policy wants to run together, as stages of groups, checked (TOP, section IV)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from heimdall.coordinator.job import Job
from heimdall.coordinator.states import CoordinationError
from heimdall.schedulers.base import Assignment
from heimdall.vocabulary.events import Group

Chosen = Sequence[tuple[Assignment, Job]]
Stages = tuple[tuple[Group, ...], ...]


def stages_of(chosen: Chosen) -> Stages:
    """The groups of what was chosen, by stage. Raises CoordinationError where the ops of a job are
    not one range from its next op on."""
    at = {job.id: job.next_op for _, job in chosen}
    ranges: dict[int, list[tuple[int, int]]] = {job.id: [] for _, job in chosen}
    stages: dict[int, list[Group]] = {}
    for one, job in sorted(chosen, key=lambda pair: pair[0].stage):
        ops = one.ops or ((at[job.id], one.end_op),)
        at[job.id] = max(at[job.id], one.end_op, *(end for _, end in ops))
        ranges[job.id] += ops
        stages.setdefault(one.stage, []).append(Group(job.id, job.dnn, job.stage, job.task, ops))
    for _, job in chosen:
        _check_covered(job, ranges[job.id])
    return tuple(tuple(groups) for groups in stages.values())


def check_lanes(processor: str, lanes: int, stages: Stages) -> None:
    """Raise CoordinationError where the groups of a stage cannot run at the same time."""
    if lanes == 1:
        raise CoordinationError(
            f"processor {processor!r} has one lane: nothing runs together there; choose one job, "
            "or give the processor more lanes"
        )
    most = max(len(groups) for groups in stages)
    if most > lanes:
        raise CoordinationError(
            f"a stage of {most} groups cannot run on processor {processor!r}, which has {lanes} "
            "lanes"
        )


def longest_ns(processor: str, stages: Stages, jobs: dict[int, Job]) -> int:
    """What the stages take where groups do not hinder each other. Raises CoordinationError for ops
    that the processor does not support."""
    total_ns = 0
    for groups in stages:
        total_ns += max(_group_ns(processor, group, jobs[group.job]) for group in groups)
    return total_ns


def _group_ns(processor: str, group: Group, job: Job) -> int:
    found_ns = 0
    for start, end in group.ops:
        ns = job.stage_costs.on_ns(processor, start, end)
        if ns is None:
            raise CoordinationError(
                f"ops {start}..{end} of job {job.id} of {job.dnn!r} cannot run on {processor!r}"
            )
        found_ns += ns
    return found_ns


def _check_covered(job: Job, ranges: Sequence[tuple[int, int]]) -> None:
    inside = all(job.next_op <= start < end <= job.stage_costs.ops for start, end in ranges)
    edges = [(job.next_op, job.next_op), *sorted(ranges)]
    if not inside or any(one[1] != other[0] for one, other in pairwise(edges)):
        raise CoordinationError(
            f"job {job.id} of {job.dnn!r} is at op {job.next_op} of {job.stage_costs.ops}: ops "
            f"{sorted(ranges)} are not one range from there on"
        )
