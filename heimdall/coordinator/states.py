"""The life of a job as a table: what can happen to it in each state, and where that leads.

Everything that changes a job's state stands here. What happens is an event that the coordinator is
told, or an action that it gives itself; both by their type. So one step has one successor: a chunk
that ends leaves its job ready, and it is the action given next that says what for.
"""

from __future__ import annotations

from collections.abc import Mapping

from heimdall.errors import HeimdallError
from heimdall.vocabulary.enums import Name
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnBuilt,
    DnnRemoved,
    Drop,
    FallbackFinished,
    Finish,
    InputReady,
    JobFailed,
    Prepare,
    ProcessorLost,
    RunChunk,
    RunFallback,
    RunTogether,
)


class CoordinationError(HeimdallError):
    """An event or choice that cannot happen in this state: the coordinator's driver (or a
    scheduling policy) is at fault. The message names job, state and event."""


class PutBack:
    """The processor of a running job is lost, and it waits for another one (never an event)."""


class State(Name):
    """Where a job is. (Names hash in C; a plain Enum hashes in Python at every transition.)"""

    PREPARING = "preparing"  # the pool makes the inputs of its current stage
    READY = "ready"  # it could run
    RUNNING = "running"  # a chunk of it is on a processor
    FALLBACK = "fallback"  # the pool runs ops that the GPU engine lacks
    FINISHED = "finished"
    DROPPED = "dropped"


# A global is found sooner than a member of an Enum, and decisions are made of such look-ups.
PREPARING, READY, RUNNING, FALLBACK, FINISHED, DROPPED = State

_DROPPED = dict.fromkeys((JobFailed, ProcessorLost, DnnRemoved, DnnBuilt, Drop), DROPPED)

TABLE: Mapping[State, Mapping[type, State]] = {
    PREPARING: {InputReady: READY, **_DROPPED},
    READY: {
        RunChunk: RUNNING,
        RunTogether: RUNNING,
        RunFallback: FALLBACK,
        Prepare: PREPARING,  # the next stage, or the first one anew
        Finish: FINISHED,
        **_DROPPED,
    },
    RUNNING: {ChunkFinished: READY, PutBack: READY, **_DROPPED},
    FALLBACK: {FallbackFinished: READY, **_DROPPED},
    # Decoding of the result may still fail.
    FINISHED: {JobFailed: FINISHED},
    # What was under way when it was dropped still reports back.
    DROPPED: dict.fromkeys((InputReady, ChunkFinished, FallbackFinished, JobFailed), DROPPED),
}


def illegal(job: int, dnn: str, state: State, event: type) -> CoordinationError:
    """The error of an event that cannot happen to a job in ``state``."""
    legal = ", ".join(sorted(each.__name__ for each in TABLE[state]))
    return CoordinationError(
        f"job {job} of {dnn!r} is {state}: {event.__name__} cannot happen now (only {legal})"
    )
