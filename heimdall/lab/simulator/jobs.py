"""A coordinator's jobs in virtual time: what becomes of its actions, and when that is reported.

Whose job it is says what it works on (``clients.py``), where it runs how long that takes
(``processors.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from heimdall.coordinator.coordinator import Coordinator
from heimdall.lab.simulator.agenda import Agenda
from heimdall.lab.simulator.machine import SimulatedDnn
from heimdall.lab.simulator.run import SimulatedRun
from heimdall.vocabulary.events import (
    Action,
    DnnMoved,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    Move,
    Prepare,
    RunChunk,
    RunFallback,
    RunTogether,
    Yield,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU


class Client(Protocol):
    """What asks for jobs of a DNN."""

    def prepare(self, action: Prepare) -> None:
        """Get a job's inputs ready."""

    def runs(self, action: RunChunk) -> None:
        """A range of a job begins."""

    def finish(self, action: Finish) -> None:
        """A job has run."""

    def drop(self, action: Drop) -> None:
        """A job is given up."""


class Processor(Protocol):
    """Where ranges run."""

    def start(self, action: RunChunk, begin_ns: int) -> None:
        """Run a range that is there at ``begin_ns``."""

    def start_together(self, action: RunTogether) -> None:
        """Run ranges of several jobs at once."""

    def end_soon(self) -> None:
        """The range that runs is to yield."""


class Workers(Protocol):
    """Threads that take work in turn."""

    def end_ns(self, now_ns: int, work_ns: int) -> int:
        """When work that is queued now is done."""


class AtOnce:
    """As many threads as there is work."""

    def end_ns(self, now_ns: int, work_ns: int) -> int:
        return now_ns + work_ns


class Jobs:
    """What every run around a coordinator has. ``agenda``: what is reported when: events for the
    coordinator, and calls."""

    now_ns: int
    coordinator: Coordinator

    def __init__(
        self,
        plans: Sequence[DnnPlan],
        *,
        pool: Workers,
        movers: Workers,
        move_ns: int,
        handoff_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """``pool`` runs ops that the GPU lacks, ``movers`` move a DNN, in ``move_ns``;
        ``handoff_ns``: from one thread to another, this time."""
        self.clients: Mapping[str, Client] = {}
        self.processors: Mapping[str, Processor] = {}
        self.pool, self._movers, self._move_ns = pool, movers, move_ns
        self.handoff_ns = handoff_ns
        self.agenda: Agenda[Event | Callable[[], None]] = Agenda()
        self._op_ns = {plan.name: [stage.op_ns for stage in plan.stages] for plan in plans}
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: lambda action: self.clients[action.dnn].prepare(action),
            RunChunk: self._run_chunk,
            RunTogether: lambda each: self.processors[each.processor].start_together(each),
            Yield: self._yield,
            RunFallback: self._run_fallback,
            Move: self._move,
            Finish: lambda action: self.clients[action.dnn].finish(action),
            Drop: lambda action: self.clients[action.dnn].drop(action),
        }

    # --- for clients and processors ------------------------------------------------------------

    def handed_over(self) -> int:
        """When a worker that is given something now has it."""
        return self.now_ns + self.handoff_ns()

    def report(self, at_ns: int, what: Event | Callable[[], None]) -> None:
        """A worker reports it then, of which the coordinator hears a little later."""
        self.agenda.add(at_ns + self.handoff_ns(), what)

    def later(self, at_ns: int, event: Event) -> None:
        """The coordinator hears of it then."""
        self.agenda.add(at_ns, event)

    def tell(self, event: Event) -> None:
        """The coordinator hears of it now."""
        raise NotImplementedError

    def span(self, lane: str, name: str, start_ns: int, end_ns: int, **details: object) -> None:
        """For the timeline."""

    # --- actions -------------------------------------------------------------------------------

    def carry_out(self, actions: Sequence[Action]) -> None:
        """Begin them."""
        for action in actions:
            self._handlers[type(action)](action)

    def happen(self) -> None:
        """What is next on the agenda."""
        _, what = self.agenda.pop()
        if callable(what):
            what()
        else:
            self.tell(what)

    def _run_chunk(self, action: RunChunk) -> None:
        self.clients[action.dnn].runs(action)
        self.processors[action.processor].start(action, self.handed_over())

    def _yield(self, action: Yield) -> None:
        for processor in self.processors.values():
            processor.end_soon()

    def _run_fallback(self, action: RunFallback) -> None:
        begin_ns = self.handed_over()
        op_ns = self._op_ns[action.dnn][action.stage]
        end_ns = self.pool.end_ns(begin_ns, sum(op_ns[action.start_op : action.end_op]))
        self.span("pool-0", f"{action.dnn} fallback", begin_ns, end_ns)
        self.report(end_ns, FallbackFinished(action.job, action.end_op, end_ns - begin_ns))

    def _move(self, action: Move) -> None:
        end_ns = self._movers.end_ns(self.handed_over(), self._move_ns)
        name = f"{action.dnn} moves to {action.processor}"
        self.span(CPU, name, self.now_ns, end_ns, reason=action.reason)
        self.report(end_ns, DnnMoved(action.dnn, action.processor))


class FramesAndJobs(SimulatedRun, Jobs):
    """A run that draws frames beside its jobs, as their clients and processors know it.
    ``networks``: all that may run, by name; ``frame``: the number of the newest."""

    networks: Mapping[str, SimulatedDnn]
    frame: int
