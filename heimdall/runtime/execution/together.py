"""Groups of ops of several jobs as one launch of an engine (TOP, section IV)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack

from heimdall.engine.base import Engine
from heimdall.engine.together import GroupMember
from heimdall.runtime.execution.unit_network import Placement
from heimdall.vocabulary.events import Group, RunChunk, RunTogether

Join = Callable[[RunChunk, str], AbstractContextManager[Placement | None]]


def chunks_of(action: RunTogether) -> list[RunChunk]:
    """What each job in it runs, as it would by itself."""
    groups = {group.job: group for stage in action.stages for group in stage}
    return [
        RunChunk(
            job,
            groups[job].dnn,
            groups[job].stage,
            groups[job].task,
            action.processor,
            start,
            end,
            action.expected_ns,
            action.reason,
        )
        for job, start, end in action.parts
    ]


def launch(action: RunTogether, engine: Engine, join: Join) -> int:
    """Run it, and return the elapsed ns. ``join`` brings a job's tensors to the processor, or gives
    None where it was dropped meanwhile; its context ends when all have run.

    Raises what ``join`` and ``Engine.run_together`` raise.
    """
    with ExitStack() as stack:
        ready: dict[int, Placement] = {}
        for chunk in chunks_of(action):
            where = stack.enter_context(join(chunk, action.processor))
            if where is not None:
                ready[chunk.job] = where
        return _run(action, engine, ready)


def _run(action: RunTogether, engine: Engine, ready: Mapping[int, Placement]) -> int:
    """Jobs with ops that the engine lacks run by themselves, behind the others."""
    ends = {job: end for job, _, end in action.parts if job in ready}
    lacking = {job for job, end in ends.items() if ready[job].lacks(end)}
    together = ready.keys() - lacking
    stages = [
        [_part(group, ready[group.job]) for group in stage if group.job in together]
        for stage in action.stages
    ]
    elapsed_ns = engine.run_together([stage for stage in stages if stage])
    for job in together:
        ready[job].unit = ends[job]
    return elapsed_ns + sum(ready[job].run(ends[job]) for job in ends if job in lacking)


def _part(group: Group, where: Placement) -> GroupMember:
    ranges = tuple(where.unit_network.ops(start, end) for start, end in group.ops)
    return GroupMember(where.network, where.state, ranges)
