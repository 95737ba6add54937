"""The way of one inference through its pipeline: inputs out, outputs in, stage after stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heimdall.models.base import Pipeline, Prepared
from heimdall.models.memory import Memory, Values

Tensors = Mapping[str, np.ndarray]
Infer = Callable[[int, Tensors], Tensors]  # (stage, inputs) -> outputs


class Walk:
    """One inference of ``pipeline`` on ``image``, whatever runs its networks.

    ``prepare`` gives the tasks of the next stage, ``decode`` takes their outputs, in turns until
    ``ended``; then ``result`` is there. A stage without tasks (no palm found) is the last one.
    The first stage's network is given what is in ``memory`` besides, and leaves it there; so does
    the pipeline with what it knows of results.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        image: np.ndarray,
        options: Mapping[str, Any],
        memory: Memory | None = None,
    ) -> None:
        self._pipeline, self._image, self._options = pipeline, image, options
        self._memory = memory
        self._kept: Values = {}
        self._begun = 0
        self._past: Any = None
        self._left: Any = None
        self._results: list[list[Any]] = []
        self.tasks: Sequence[Prepared] = ()

    @property
    def stage(self) -> int:
        """The stage that is being run, or would be next."""
        return len(self._results)

    @property
    def ended(self) -> bool:
        """Whether no stage is left."""
        results = self._results
        return len(results) == len(self._pipeline.networks) or (bool(results) and not results[-1])

    def prepare(self) -> Sequence[Prepared]:
        """The tasks of the next stage, from the results of the one before."""
        previous = self._results[-1] if self._results else []
        self.tasks = self._pipeline.prepare(self.stage, self._image, previous, self._options)
        if self._memory is not None and self.stage == 0:
            self._kept, self._begun, self._past = self._memory.recall()
            self.tasks = [
                replace(task, inputs={**task.inputs, **self._kept}) for task in self.tasks
            ]
        return self.tasks

    def decode(self, outputs: Sequence[Tensors]) -> None:
        """Take the outputs of the stage's tasks, in their order."""
        stage = self.stage
        if self._memory is not None and stage == 0:
            kept = self._memory.outputs
            self._kept = outputs[0]
            outputs = [{n: each[n] for n in each if n not in kept} for each in outputs]
        self._results.append(
            [
                self._pipeline.decode(stage, each, task.context)
                for each, task in zip(outputs, self.tasks, strict=True)
            ]
        )

    def result(self) -> Any:
        """What the app gets."""
        result = self._pipeline.combine(self._results, self._image)
        if self._memory is not None:
            result, self._left = self._pipeline.follow(result, self._past)
        return result

    def remember(self) -> None:
        """Leave what the next inference is to know in the memory: this one counts."""
        if self._memory is not None:
            self._memory.keep(self._kept, self._begun, self._left)


def run_pipeline(
    pipeline: Pipeline,
    image: np.ndarray,
    infer: Infer,
    options: Mapping[str, Any] | None = None,
    memory: Memory | None = None,
) -> Any:
    """The result of a whole inference, each network run by ``infer(stage, inputs)``."""
    walk = Walk(pipeline, image, options or {}, memory)
    while not walk.ended:
        stage = walk.stage
        walk.decode([infer(stage, task.inputs) for task in walk.prepare()])
    result = walk.result()
    walk.remember()
    return result
