"""The client of an app's DNN: each job is about the newest frame, through the DNN's pipeline."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heimdall.engine.checks import check_finite, check_inputs
from heimdall.errors import AppError
from heimdall.graph.exits import as_whole
from heimdall.models.base import Prepared
from heimdall.models.luminance import luminance_difference
from heimdall.models.walk import Walk
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.runs import RegisteredDnn, RunningJob
from heimdall.system.workers import Workers
from heimdall.vocabulary.events import Drop, Prepare
from heimdall.vocabulary.processors import GPU

if TYPE_CHECKING:
    import numpy as np

    from heimdall.capture import Frame

log = logging.getLogger(__name__)

_PATIENCE_S = 0.5  # with decoding that hangs: less than what is given up by

Newest = Callable[[], "Frame"]
Renew = Callable[[Any, "Frame"], None]


class Frames:
    """The frames that one DNN looks at."""

    def __init__(
        self,
        deployment: Deployment,
        newest: Newest,
        renew: Renew,
        measure: Callable[[np.ndarray], np.ndarray],
        pool: Workers,
    ) -> None:
        """``newest`` gives the frame of a job that begins; ``renew`` hears of each result in the
        ``pool``; ``measure``: of what the change from one picture to the next is summed."""
        self.deployment, self.newest, self.renew, self.workers = deployment, newest, renew, pool
        self.options: Mapping[str, Any] = {}  # of its newest request
        self._measure = measure
        self._measured: np.ndarray | None = None  # of its last picture

    def begin(self, action: Prepare, registered: RegisteredDnn, now_ns: int) -> RunningJob:
        return FrameRun(self, registered, now_ns)

    def dropped(self, action: Drop, run: RunningJob | None) -> None:
        """The next frame is soon here."""

    def luminance(self, image: np.ndarray) -> float:
        """By how much a picture differs from the one before (0 for the first)."""
        measured, last = self._measure(image), self._measured
        self._measured = measured
        return 0.0 if last is None else luminance_difference(measured, last)


class FrameRun(RunningJob):
    """A job about the newest frame."""

    frame: Frame

    def __init__(
        self,
        client: Frames,
        registered: RegisteredDnn,
        requested_ns: int,
        subject: Any = None,
    ) -> None:
        """``subject``: what its pipeline is given instead of the frame's picture."""
        super().__init__(registered, requested_ns)
        self._client, self.frame = client, client.newest()
        given = self.frame.image if subject is None else subject
        deployment = client.deployment
        self._memory = deployment.memory
        self._walk = Walk(deployment.pipeline, given, client.options, deployment.memory)

    def prepare(self, stage: int) -> tuple[int, float]:
        """Raises AppError where the tensors do not fit, and whatever the app's code raises."""
        difference = 0.0
        if stage == 0:
            difference = self._client.luminance(self.frame.image)
        else:
            self.read_last()
            self._decode()
        if self._memory is not None:
            if stage == 0 and not self.quick:
                self.before.wait(_PATIENCE_S)  # the last job leaves what this one begins with
            if self.registered.processor != GPU:
                self._memory.bring()
        tasks = self._walk.prepare()
        self._check(stage, tasks)
        self.kept = self._memory.outputs if self._memory is not None and stage == 0 else ()
        self.inputs, self.outputs = [task.inputs for task in tasks], {}
        if tasks and not self.quick:  # it may have to wait for what the GPU does
            self._write_first(stage)
        return len(tasks), difference

    def _check(self, stage: int, tasks: Sequence[Prepared]) -> None:
        """Tensors that do not fit are the app's fault, and must not count as the GPU's."""
        if stage == 0 and len(tasks) != 1:
            raise AppError(f"stage 0 must be given exactly one task, not {len(tasks)}")
        graph = self.registered.networks.graphs[stage]
        for task in tasks:
            check_inputs(graph, task.inputs)
            check_finite(graph, task.inputs)

    def _write_first(self, stage: int) -> None:
        try:
            self.write_ahead(stage)
        except Exception:
            name = self.registered.name
            log.debug("%s: its worker copies the input again, and reports", name, exc_info=True)

    def result(self) -> Any:
        """The decoded result of the whole job, of which the DNN's app hears at once."""
        self._decode()
        value = self._walk.result()
        if not self.abandoned:
            self._walk.remember()
            value = self._heard(value)
            self._client.renew(value, self.frame)
        return value

    def _heard(self, value: Any) -> Any:
        """What the app gets of a result that counts."""
        return value

    def _decode(self) -> None:
        exits = self.registered.networks.graphs[self._walk.stage].exits
        tasks = range(len(self.inputs))
        self._walk.decode([as_whole(exits, self.outputs[task]) for task in tasks])
