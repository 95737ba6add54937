"""One inference: what the coordinator keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heimdall.coordinator.states import PREPARING, TABLE, State, illegal
from heimdall.schedulers.base import JobView

if TYPE_CHECKING:
    from heimdall.coordinator.dnn import Dnn
    from heimdall.coordinator.expected import StageCosts


@dataclass(slots=True, eq=False, kw_only=True)
class Job(JobView):
    """What the coordinator keeps of a job beyond what policies see. Only ``happened`` sets
    ``state``."""

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

    def happened(self, event: type) -> None:
        """Go on to the state that this type of event or action leads to. Raises CoordinationError
        when it cannot happen now."""
        try:
            self.state = TABLE[self.state][event]
        except KeyError:
            raise illegal(self.id, self.dnn, self.state, event) from None

    @property
    def enqueued(self) -> bool:
        """Whether its first input is ready: latency and utility count from then on."""
        return self.stage > 0 or self.state is not PREPARING
