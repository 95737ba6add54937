"""The life of one inference: its states and every legal transition, in one table."""

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

_AFTER_OPS = frozenset({READY, FALLBACK, PREPARING, FINISHED})
_DROPPED = {"JobFailed": frozenset({DROPPED}), "ProcessorLost": frozenset({DROPPED})}

# state -> what happened (an event, or an action for what the coordinator itself starts) -> next
TRANSITIONS: Mapping[State, Mapping[str, frozenset[State]]] = {
    PREPARING: {
        "InputReady": frozenset({READY, FALLBACK, FINISHED}),
        **_DROPPED,
    },
    READY: {"RunChunk": frozenset({RUNNING}), **_DROPPED},
    RUNNING: {"ChunkFinished": _AFTER_OPS, **_DROPPED},
    FALLBACK: {"FallbackFinished": _AFTER_OPS, **_DROPPED},
    # Decoding of the result may still fail, and a lost processor may still report back.
    FINISHED: {"JobFailed": frozenset({FINISHED})},
    DROPPED: dict.fromkeys(
        ("InputReady", "ChunkFinished", "FallbackFinished", "JobFailed"), frozenset({DROPPED})
    ),
}


def check(job: int, dnn: str, state: State, event: str) -> None:
    """Raise CoordinationError unless ``event`` may happen to a job in ``state``."""
    if event not in TRANSITIONS[state]:
        legal = ", ".join(sorted(TRANSITIONS[state])) or "nothing"
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
    last_op_ns: int = 0  # when its last op so far ended
    chunks: int = 0

    @property
    def enqueued(self) -> bool:
        """Whether its first input is ready: latency and utility count from then on."""
        return self.stage > 0 or self.state is not PREPARING

    def to(self, state: State, event: str) -> None:
        """Make one transition of the table; an illegal one raises CoordinationError."""
        if state not in TRANSITIONS[self.state].get(event, ()):
            check(self.id, self.dnn, self.state, event)
            raise CoordinationError(
                f"job {self.id} of {self.dnn!r} is {self.state.value}: {event} cannot make it "
                f"{state.value}"
            )
        self.state = state
