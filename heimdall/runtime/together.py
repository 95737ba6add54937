"""Groups of ops of several jobs as one launch of an engine (TOP, section IV)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

from heimdall.engine.base import Engine
from heimdall.engine.network import State
from heimdall.engine.together import Part
from heimdall.runtime.served import Placed
from heimdall.vocabulary.events import Group, RunChunk, RunTogether


class Ready(NamedTuple):
    """A job whose tensors are on the processor, before the first op that it is to run."""

    placed: Placed
    state: State


Join = Callable[[RunChunk], AbstractContextManager[Ready | None]]


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
    """Run it, and return the elapsed ns. ``join`` gets a job ready, or gives None where it was
    dropped meanwhile; its context ends when all have run.

    Raises what ``join`` and ``Engine.run_together`` raise.
    """
    with ExitStack() as stack:
        ready: dict[int, Ready] = {}
        for chunk in chunks_of(action):
            found = stack.enter_context(join(chunk))
            if found is not None:
                ready[chunk.job] = found
        return _run(action, engine, ready)


def _run(action: RunTogether, engine: Engine, ready: Mapping[int, Ready]) -> int:
    """Jobs with ops that the engine lacks run by themselves, behind the others."""
    lacking = {
        job: (start, end)
        for job, start, end in action.parts
        if job in ready and ready[job].placed.lacks(start, end)
    }
    together = ready.keys() - lacking.keys()
    stages = [
        [_part(group, ready[group.job]) for group in stage if group.job in together]
        for stage in action.stages
    ]
    elapsed_ns = engine.run_together([stage for stage in stages if stage])
    for job, (start, end) in lacking.items():
        elapsed_ns += ready[job].placed.run(ready[job].state, start, end)
    return elapsed_ns


def _part(group: Group, ready: Ready) -> Part:
    edges = ready.placed.edges
    ranges = tuple((edges[start], edges[end]) for start, end in group.ops)
    return Part(ready.placed.network, ready.state, ranges)
