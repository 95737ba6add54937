"""The client of a language model's DNN: a job for each step of an answer."""

from __future__ import annotations

from typing import Any

from heimdall.models.generation.decoder import DecoderPipeline
from heimdall.models.generation.writer import Kind, Step, Writer
from heimdall.runtime.execution.asked import Asked
from heimdall.vocabulary.events import Drop


class Writing(Asked[Step]):
    """The steps of one kind. A step is asked for when the last one's memory is there."""

    quick = True
    missing = "{name} is asked by its feed: self.{name}.ask(...)"

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

    def take(self) -> Step | None:
        return self.writer.begin(self.kind)

    def dropped_with(self, subject: Step, action: Drop) -> None:
        """One that is tried again is still the next one."""
        if not action.again:
            self.writer.failed(subject, action.reason)

    def heard(self, subject: Step, value: Any) -> Any:
        """The Answer; the next step may begin now."""
        self.writer.took(subject, value)
        return subject.answer
