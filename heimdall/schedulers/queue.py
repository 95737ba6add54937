"""Policies with one queue of requests for all processors (Band, Fig. 11; SPLIT, Algorithm 1).

The coordinator keeps the queue: a job is placed in it when its input is ready, and stays until its
last op has run. Where rendering has a processor for itself between gaps, the coordinator shortens
or withholds what does not fit the gap; a policy need not know.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from heimdall.schedulers.base import Choice, JobView, Scheduler


@dataclass(slots=True)
class QueueView:
    """The moment of a decision, for all processors that have room.

    ``queue``: the jobs that wait for a processor, in the queue's order, each at the op
    ``next_op`` of its current stage, whose expected times are ``job.costs[job.stage]``
    (``on_ns(processor, start, end)``, None where an op is not supported; ``block_end(op)``: where
    the block, or unit, of its partition ends, or a fallback op stops it). ``running``: the jobs
    that have a processor. ``idle``: a processor's id for each free lane of it, in the order of
    ``processors``, which are all that work. ``free_ns``: by processor, when it is expected to have
    a free lane; never before now. ``handoff_ns``: by processor, what a chunk takes beside its own
    time until one hears of its end, as it was lately.
    """

    queue: Sequence[JobView]
    running: Collection[JobView]
    processors: Sequence[str]
    idle: Sequence[str]
    free_ns: Mapping[str, int]
    interval_ns: int
    handoff_ns: Mapping[str, float] = field(default_factory=dict)


class QueuePolicy(Scheduler):
    """One of them. ``requeues``: what is left of a job when a range of it has run is placed anew
    (Band's ENQUEUEREMAINING); else it keeps its place (SPLIT's full preemption). ``partition``: the
    strategy that networks are best cut by for it. ``together``: it chooses groups of ops that run
    at the same time, on processors with several lanes."""

    requeues: bool = False
    together: bool = False
    partition: str = "whole"
    wake_ns: float = inf  # to be asked again then, set by ``select``, though nothing has happened

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        """Where ``job``, which has just become ready, goes in ``queue`` (all unfinished jobs, those
        that run included): before the job with that index. Default: at its end."""
        return len(queue)

    def hopeless(self, job: JobView, now_ns: int) -> str:
        """Why a job that waits is to be dropped, "" to keep it. Default: none ever is."""
        return ""

    @abstractmethod
    def select(self, view: QueueView, now_ns: int) -> Choice | None:  # type: ignore[override]
        """What to start now, one assignment for an idle lane and a job at most: the job's ops from
        ``next_op`` to ``end_op`` on ``processor``; or what runs together on a processor of which
        all lanes are idle. None, or no assignment: nothing."""
