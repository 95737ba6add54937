"""The life of one inference: its states and what may happen in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from heimdall.errors import HeimdallError
from heimdall.schedulers.base import JobView

if TYPE_CHECKING:
    from heimdall.coordinator.dnn import Dnn
    from heimdall.coordinator.expected import StageCosts


class CoordinationError(HeimdallError):
    """An event or choice that cannot happen in this state: whoever drives the coordinator (or a
    scheduling policy) is at fault. The message names job, state and event."""


class State(str, Enum):
    """Where a job is. (Strings hash in C; a plain Enum hashes in Python at every transition.)"""

    PREPARING = "preparing"  # the pool makes the inputs of its current stage
    READY = "ready"  # it could run
    RUNNING = "running"  # a chunk of it is on a processor
    FALLBACK = "fallback"  # the pool runs ops that the GPU engine lacks
    FINISHED = "finished"
    DROPPED = "dropped"


# A global is found sooner than a member of an Enum, and decisions are made of such look-ups.
PREPARING, READY, RUNNING, FALLBACK, FINISHED, DROPPED = State

_DROPPED = frozenset({"JobFailed", "ProcessorLost"})

# What may happen to a job in each state; FINISHED and DROPPED jobs only hear of it late.
LEGAL: Mapping[State, frozenset[str]] = {
    PREPARING: frozenset({"InputReady"}) | _DROPPED,
    READY: _DROPPED,
    RUNNING: frozenset({"ChunkFinished"}) | _DROPPED,
    FALLBACK: frozenset({"FallbackFinished"}) | _DROPPED,
    # Decoding of the result may still fail, and a lost processor may still report back.
    FINISHED: frozenset({"JobFailed"}),
    DROPPED: frozenset({"InputReady", "ChunkFinished", "FallbackFinished", "JobFailed"}),
}


def check(job: int, dnn: str, state: State, event: str) -> None:
    """Raise CoordinationError unless ``event`` may happen to a job in ``state``."""
    if event not in LEGAL[state]:
        legal = ", ".join(sorted(LEGAL[state])) or "nothing"
        raise CoordinationError(
            f"job {job} of {dnn!r} is {state.value}: {event} cannot happen now (only {legal})"
        )


@dataclass(slots=True, eq=False, kw_only=True)
class Job(JobView):
    """What the coordinator keeps of a job beyond what policies see."""

    owner: Dnn
    stage_costs: StageCosts  # of the current stage
    state: State = PREPARING
    prepare_ns: int = 0  # when preprocessing of the current stage was asked for
    running_end_op: int = 0
    may_end_early: bool = False  # the chunk that runs
    yields: bool = False  # and has been asked to
    chunk_end_ns: int = 0  # when it is expected to end
    last_op_ns: int = 0  # when its last op so far ended
    chunks: int = 0

    @property
    def enqueued(self) -> bool:
        """Whether its first input is ready: latency and utility count from then on."""
        return self.stage > 0 or self.state is not PREPARING
