"""Jobs in flight: what each works on, and where its tensors are.

A job's client brings what it works on (a frame: ``frames.py``; a request: ``requests.py``). From
there on all jobs are alike: what a range of units needs of the one before is copied to its
processor if that ran elsewhere, and computed anew if it is lost.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from heimdall.runtime.execution.deployment import Networks
from heimdall.runtime.execution.unit_network import Placement, Tensors, UnitNetwork
from heimdall.runtime.execution.yield_points import YieldPoints
from heimdall.system.workers import Workers
from heimdall.vocabulary.events import Drop, Finish, Prepare, RunChunk, RunFallback
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU

if TYPE_CHECKING:
    from heimdall.capture import Frame

Report = Callable[[str, BaseException], None]  # (what failed, why)


@dataclass(frozen=True)
class Result:
    """A job's decoded result on its way to ``App.on_result``; of a request, whose client has it
    already, only that there is one."""

    dnn: str
    value: Any
    frame: Frame | None
    finish: Finish
    requested_ns: int
    decoded_ns: int


class Client(Protocol):
    """What asks for jobs of a DNN: the frames of an app, or requests."""

    workers: Workers  # which hand over what came of a job

    def begin(self, action: Prepare, registered: RegisteredDnn, now_ns: int) -> RunningJob:
        """The job that has been admitted."""

    def dropped(self, action: Drop, run: RunningJob | None) -> None:
        """There will be nothing of a job, or of what never became one (None)."""


class RegisteredDnn:
    """A DNN as the coordinator knows it: which networks run its jobs, for which client, where.
    ``name``: what messages call it."""

    def __init__(self, name: str, networks: Networks, client: Client, report: Report) -> None:
        self.name, self.networks, self.client, self.report = name, networks, client, report
        # Where its jobs run, unless each range chooses.
        self.processor = GPU if networks.built else CPU
        self.told = threading.Event()  # of its last job that has ended: so has whoever it tells
        self.told.set()
        self._stages: Sequence[StagePlan] = ()
        self._parts: list[YieldPoints] = []

    def parts(self, stage: int) -> YieldPoints:
        """Where a chunk of a stage may stop. What was built meanwhile has another plan."""
        stages = self.networks.stages
        if stages is not self._stages:
            self._parts = [
                YieldPoints(each.op_ns, each.chunk_cost_ns, each.fallback) for each in stages
            ]
            self._stages = stages
        return self._parts[stage]


@dataclass(frozen=True)
class Ahead:
    """Fallback ops that were begun as soon as the chunk before them had ended; ``result``: what
    they took, in ns."""

    action: RunFallback
    result: Future[int]


class RunningJob(ABC):
    """One job. ``inputs``: the tensors of each task of its stage; ``outputs``: of those tasks that
    have run. ``failed_on``: processors that were lost when they ran it.

    A thread that works on its tensors holds it. One that is dropped meanwhile keeps its state until
    that thread is done; then another job may have it.
    """

    prepared = False  # whether it comes with its inputs, or they have to be made
    quick = False  # whether that takes no time to speak of, and no other thread is worth waking
    patient = False  # whether it is tried again where a processor fails, and waits for another one
    frame: Frame | None = None
    abandoned = False
    kept: Collection[str] = ()  # outputs that are inputs of its DNN's next job
    ahead: Ahead | None = None

    def __init__(self, registered: RegisteredDnn, requested_ns: int) -> None:
        self.registered, self.requested_ns = registered, requested_ns
        self.told, self.before = threading.Event(), registered.told  # its own; that of the last one
        self.inputs: Sequence[Tensors] = ()
        self.outputs: dict[int, Tensors] = {}
        self.failed_on: set[str] = set()
        self._where: Placement | None = None
        self._over = False
        self._lock = threading.Lock()

    # --- for the client ---------------------------------------------------------------------

    @abstractmethod
    def prepare(self, stage: int) -> tuple[int, float]:
        """Get a stage ready; its number of tasks, and how much the picture has changed."""

    @abstractmethod
    def result(self) -> Any:
        """Hand over what came out, once the last output has been read."""

    def give_up(self, reason: str) -> None:  # noqa: B027 - optional
        """Nothing will come out."""

    def afresh(self) -> RunningJob:
        """The same job from its beginning, on tensors of its own: a thread hangs with these."""
        return self

    # --- its tensors ------------------------------------------------------------------------

    @contextlib.contextmanager
    def at(self, action: RunChunk | RunFallback, processor: str) -> Iterator[Placement | None]:
        """Its tensors on a processor, before the first unit of ``action``: while the context lasts
        these are run. None: it was dropped."""
        with self._held() as wanted:
            if not wanted:
                yield None
                return
            unit_network = self.registered.networks.unit_network(action.stage, processor)
            where = self._brought(unit_network, action.task, action.start_op)
            try:
                yield where
            except BaseException:  # its tensors are those of no unit
                self._leave()
                raise
            if where.is_done and action.task + 1 < len(self.inputs):
                self.outputs[action.task] = self._read(where)

    def write_ahead(self, stage: int) -> None:
        """Copy a stage's first input to where it will most likely run, so that the processor need
        not wait."""
        with self._held() as wanted:
            if wanted:
                self._brought(
                    self.registered.networks.unit_network(stage, self.registered.processor), 0, 0
                )

    def read_last(self) -> None:
        """Copy the output of the stage's last task; its state is left to another job."""
        with self._held():
            if self._where is not None and self._where.is_done:
                last = len(self.inputs) - 1
                self.outputs[last] = self._read(self._where)
            self._leave()

    def _read(self, where: Placement) -> Tensors:
        """A task's outputs; those that are kept for the next job stay where they are."""
        network, state, kept = where.network, where.state, self.kept
        return {**network.read(state, leave=kept), **network.keep(state, kept)}

    def end(self) -> None:
        """The job is over, or dropped."""
        self._over = True
        self._let_go()

    def abandon(self) -> None:
        """Over, but a thread hangs with its tensors: nobody waits for them. What that thread brings
        later is of no use (``abandoned``)."""
        self.abandoned, where = True, self._where
        if where is not None:
            where.give_up()
        self.end()

    @contextlib.contextmanager
    def _held(self) -> Iterator[bool]:
        """Yields True if it is still wanted; no other thread touches its tensors meanwhile."""
        try:
            with self._lock:
                yield not self._over
        finally:
            if self._over:
                self._let_go()

    def _let_go(self) -> None:
        """Leave its state to another job; a thread that holds it does that afterwards."""
        if self._lock.acquire(blocking=False):
            try:
                self._leave()
            finally:
                self._lock.release()

    def _leave(self) -> None:
        if self._where is not None:
            self._where.free()
        self._where = None

    def _brought(self, unit_network: UnitNetwork, task: int, unit: int) -> Placement:
        """Its tensors on this network before ``unit``."""
        where = self._where
        if where is not None and where.unit_network is unit_network and where.is_before(unit):
            where.unit = unit
            return where
        tensors = self._handed_over(unit)
        self._leave()
        where = self._where = unit_network.take()
        try:
            where.write(self.inputs[task], unit, tensors)
        except BaseException:
            self._leave()
            raise
        return where

    def _handed_over(self, unit: int) -> Tensors | None:
        """The tensors before ``unit``; None where there are none yet, or they are lost."""
        where = self._where
        if not unit or where is None or where.unit != unit:
            return None
        try:
            return where.network.hand_over(where.state)
        except Exception as error:
            self.registered.report("reading tensors where it ran", error)
            return None
