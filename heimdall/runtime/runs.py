"""Jobs of an app's DNNs in flight: their frames, and their tensors on each processor.

Requests, which bring tensors of their own, are in ``heimdall/runtime/requests.py``.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heimdall.engine.checks import check_inputs
from heimdall.engine.exits import is_done
from heimdall.errors import AppError
from heimdall.graph.exits import as_whole
from heimdall.models.base import Prepared
from heimdall.models.luminance import luminance_difference
from heimdall.models.walk import Walk
from heimdall.runtime.deployment import Deployment
from heimdall.runtime.parts import Parts
from heimdall.runtime.served import Placed
from heimdall.runtime.together import Ready
from heimdall.vocabulary.events import Finish, RunChunk, RunFallback
from heimdall.vocabulary.processors import CPU, GPU, PROCESSORS, REMOTE

if TYPE_CHECKING:
    import numpy as np

    from heimdall.capture import Frame
    from heimdall.engine.network import Network, State


log = logging.getLogger(__name__)

Newest = Callable[[], "Frame"]
Renew = Callable[[Any, "Frame"], None]
Compute = Callable[["Network", "State"], tuple[int, int]]  # returns where it stopped, and ns


@dataclass(frozen=True)
class Result:
    """A decoded result on its way to ``App.on_result``."""

    dnn: str
    value: Any
    frame: Frame
    finish: Finish
    requested_ns: int
    decoded_ns: int


class Hosted:
    """A DNN of an app, and what its jobs have in common."""

    def __init__(
        self,
        deployment: Deployment,
        newest: Newest,
        renew: Renew,
        measure: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """``newest`` gives the frame of a job that begins; ``renew`` hears of each result in the
        pool; ``measure``: of what the change from one picture to the next is summed."""
        self.deployment, self.newest, self.renew = deployment, newest, renew
        self.options: Mapping[str, Any] = {}  # of its newest request
        self.locks = {each: threading.Lock() for each in (*PROCESSORS, REMOTE)}  # of its states
        self.last_read = threading.Event()  # of its newest job
        self.last_read.set()
        self._measure = measure
        self._measured: np.ndarray | None = None  # of its last picture
        self.move_to(GPU if deployment.plan.built else CPU)

    def move_to(self, processor: str) -> None:
        """Where it is loaded from now on. One that was built meanwhile has another plan."""
        stages = self.deployment.plan.stages
        self.parts = [Parts(stage.op_ns, stage.chunk_cost_ns) for stage in stages]
        self.processor = processor

    def luminance(self, image: np.ndarray) -> float:
        """By how much a picture differs from the one before (0 for the first)."""
        measured, last = self._measure(image), self._measured
        self._measured = measured
        return 0.0 if last is None else luminance_difference(measured, last)


@dataclass
class Run:
    """One job in flight: its frame, and what its stages have produced so far.

    The pool copies a stage's first input to the processor and its last output from it, so that
    the processor need not wait: ``_written`` is where that input is (task, processor), ``_unread``
    where that output still is. ``read`` is set when it has been read, so that the input of the
    DNN's next job, which waits for that (``previous_read``), may take its place.
    """

    hosted: Hosted
    frame: Frame
    requested_ns: int
    previous_read: threading.Event
    walk: Walk
    read: threading.Event = field(default_factory=threading.Event)
    _written: str = ""
    _outputs: dict[int, Mapping[str, np.ndarray]] = field(default_factory=dict)
    _unread: tuple[str, Network, State] | None = None

    @classmethod
    def begin(cls, hosted: Hosted, now_ns: int, before: Run | None) -> Run:
        """A job with the newest frame. ``before``: the same job, where it begins anew; nobody will
        read what it had."""
        previous = before.previous_read if before is not None else hosted.last_read
        frame = hosted.newest()
        walk = Walk(hosted.deployment.pipeline, frame.image, hosted.options)
        run = cls(hosted, frame, now_ns, previous, walk)
        hosted.last_read = run.read
        return run

    # --- in the pool -------------------------------------------------------------------

    def prepare(self, stage: int) -> tuple[int, float]:
        """Get a stage ready; its number of tasks, and how much the picture has changed.

        Raises AppError where the tensors do not fit, and whatever the app's code raises.
        """
        difference = 0.0
        if stage == 0:
            difference = self.hosted.luminance(self.frame.image)
        else:
            self._decode()
        tasks = self.walk.prepare()
        self._check(stage, tasks)
        self._outputs = {}
        if tasks:
            self._write_first(stage, tasks[0])
        return len(tasks), difference

    def _check(self, stage: int, tasks: Sequence[Prepared]) -> None:
        """Tensors that do not fit are the app's fault, and must not count as the GPU's."""
        if stage == 0 and len(tasks) != 1:
            raise AppError(f"stage 0 must be given exactly one task, not {len(tasks)}")
        graph = self.hosted.deployment.graphs[stage]
        for task in tasks:
            check_inputs(graph, task.inputs)

    def _write_first(self, stage: int, task: Prepared) -> None:
        """Copy a stage's first input to where the DNN will most likely run."""
        self.previous_read.wait()  # the pool was given that task before this one
        processor = self.hosted.processor
        network, state = self.hosted.deployment.network(stage, processor)
        self._written = ""
        try:
            with self.hosted.locks[processor]:
                network.write(state, task.inputs)
        except Exception:
            name = self.hosted.deployment.dnn.name
            log.debug("%s: its worker copies the input again, and reports", name, exc_info=True)
        else:
            self._written = processor

    def read_last(self) -> None:
        """Copy the stage's last output, if that has not been done yet."""
        if self._unread is not None:
            processor, network, state = self._unread
            with self.hosted.locks[processor]:
                self._outputs[len(self.walk.tasks) - 1] = network.read(state)
            self._unread = None

    def result(self) -> Any:
        """The decoded result of the whole job, of which the DNN's app hears at once."""
        self._decode()
        value = self.walk.result()
        self.hosted.renew(value, self.frame)
        return value

    def _decode(self) -> None:
        self.read_last()
        exits = self.hosted.deployment.graphs[self.walk.stage].exits
        tasks = range(len(self.walk.tasks))
        self.walk.decode([as_whole(exits, self._outputs[task]) for task in tasks])

    # --- on the workers of processors ----------------------------------------------------

    def compute(
        self,
        action: RunChunk | RunFallback,
        processor: str,
        compute: Compute,
        clock: Callable[[], int],
    ) -> tuple[int, int]:
        """Run ops; returns the op before which it stopped, and the processor's time, ns.

        Between the tasks of a stage the input is copied in before, and the output out after.
        """
        network, state = self.hosted.deployment.network(action.stage, processor)
        began_ns = clock()
        with self.hosted.locks[processor]:
            self._begin(action, network, state, processor)
            written_ns = clock() - began_ns
            end, ran_ns = compute(network, state)
            self._end(action, network, state, processor, end)
        return end, written_ns + ran_ns

    @contextlib.contextmanager
    def joined(self, chunk: RunChunk) -> Iterator[Ready]:
        """For ``together.launch``."""
        network, state = self.hosted.deployment.network(chunk.stage, chunk.processor)
        with self.hosted.locks[chunk.processor]:
            self._begin(chunk, network, state, chunk.processor)
            yield Ready(Placed(network, range(len(network.ops) + 1)), state)
            self._end(chunk, network, state, chunk.processor, chunk.end_op)

    def _begin(
        self, action: RunChunk | RunFallback, network: Network, state: State, processor: str
    ) -> None:
        """Copy the input in, unless the pool has, or what ran has lost it."""
        there = self._written == processor and not action.task and state.position == 0
        if action.start_op == 0 and not there:
            network.write(state, self.walk.tasks[action.task].inputs)

    def _end(
        self,
        action: RunChunk | RunFallback,
        network: Network,
        state: State,
        processor: str,
        end_op: int,
    ) -> None:
        """Keep the outputs, if ``end_op`` is the end of a task."""
        if not is_done(network.exits, len(network.ops), end_op):
            return
        if action.task + 1 < len(self.walk.tasks):
            self._outputs[action.task] = network.read(state)
        else:
            self._unread = processor, network, state
