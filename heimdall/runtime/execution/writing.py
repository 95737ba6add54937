"""The client of a language model's DNN: a job for each step of an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heimdall.errors import AppError
from heimdall.models.generation.decoder import DecoderPipeline
from heimdall.models.generation.writer import Kind, Step, Writer
from heimdall.runtime.execution.frames import FrameRun, Frames
from heimdall.runtime.execution.runs import RegisteredDnn, RunningJob
from heimdall.vocabulary.events import Drop, Prepare


class Writing(Frames):
    """The steps of one kind. What comes with a result is the picture that was the newest then."""

    def __init__(self, *arguments: Any, ask: Callable[[], None], **more: Any) -> None:
        """``ask`` for a job; from any thread."""
        super().__init__(*arguments, **more)
        self._ask = ask

    def start(self) -> None:
        """Steps may be asked for."""
        self.writer.attach(self.kind, self._ask)

    def stop(self) -> None:
        """The run is over."""
        self.writer.detach("the run is over")

    @property
    def _pipeline(self) -> DecoderPipeline:
        pipeline = self.deployment.pipeline
        assert isinstance(pipeline, DecoderPipeline)
        return pipeline

    @property
    def writer(self) -> Writer:
        """What asks for steps."""
        return self._pipeline.decoder.writer

    @property
    def kind(self) -> Kind:
        """Of which kind its steps are."""
        return self._pipeline.kind

    def begin(self, action: Prepare, registered: RegisteredDnn, now_ns: int) -> RunningJob:
        return StepRun(self, registered, now_ns, self.writer.begin(self.kind))

    def dropped(self, action: Drop, run: RunningJob | None) -> None:
        """One that is tried again is still the next one."""
        if isinstance(run, StepRun) and run.step is not None and not action.again:
            self.writer.failed(run.step, action.reason)

    def luminance(self, image: np.ndarray) -> float:
        """Text has none."""
        return 0.0


class StepRun(FrameRun):
    """A job about a step."""

    def __init__(
        self, client: Writing, registered: RegisteredDnn, requested_ns: int, step: Step | None
    ) -> None:
        super().__init__(client, registered, requested_ns, step)
        self.step = step

    def prepare(self, stage: int) -> tuple[int, float]:
        if self.step is None:
            raise AppError(
                f"{self.registered.name} is asked by its feed: self.{self.registered.name}.ask(...)"
            )
        return super().prepare(stage)

    def _heard(self, value: Any) -> Any:
        """The Answer; the next step may begin now."""
        assert self.step is not None
        client = self._client
        assert isinstance(client, Writing)
        client.writer.took(self.step, value)
        return self.step.answer
