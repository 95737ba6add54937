"""What a network is given of a picture, and how alike two of its answers are: of a network by
itself, and of a stage of a pipeline in the catalogue, which gets exactly what it gets in an app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort

from heimdall.errors import ConfigError
from heimdall.graph.graph import Graph
from heimdall.lab.exits.distilled import Wanted, wanted
from heimdall.lab.exits.features import opened
from heimdall.lab.likeness import likeness
from heimdall.models.base import Pipeline, Prepared
from heimdall.models.image_input import ImageInput
from heimdall.models.walk import Tensors, Walk


class Source(Protocol):
    """Where a network's inputs come from. ``judged_by``: what ``alike`` compares, in words."""

    graph: Graph
    judged_by: str

    def prepare(self, image: np.ndarray) -> Sequence[Prepared]:
        """The inputs that come of one BGR picture: none, one or several."""

    def alike(self, answer: Tensors, whole: Tensors, context: Any) -> float | None:
        """How much an answer is what the whole network gives, 0 to 1; None where that tells
        nothing. ``context``: of what was prepared."""


class File:
    """A network by itself: its answers are compared value by value."""

    judged_by = "the values of its outputs"

    def __init__(self, graph: Graph, prepare: ImageInput) -> None:
        prepare.bind(graph)
        self.graph, self._prepare, self._outputs = graph, prepare, wanted(graph)

    def prepare(self, image: np.ndarray) -> Sequence[Prepared]:
        return [self._prepare(image)]

    def alike(self, answer: Tensors, whole: Tensors, context: Any) -> float:
        found = [_alike(each, answer[each.name], whole[each.name]) for each in self._outputs]
        return float(np.mean(found))


def _alike(output: Wanted, one: np.ndarray, other: np.ndarray) -> float:
    """Of scores on a map how much of them overlaps, of other scores whether the largest is the
    same, or both are on one side of a half; of values 1 less their distance, over how far they lie
    from their mean."""
    if output.end and output.is_map:
        most = float(np.maximum(one, other).sum())
        return float(np.minimum(one, other).sum()) / most if most else 1.0
    if output.end == "Softmax":
        return float((one.argmax(output.axis) == other.argmax(output.axis)).mean())
    if output.end:
        return float(((one > 0.5) == (other > 0.5)).mean())
    spread = float(np.abs(other - other.mean()).sum() if other.size > 1 else np.abs(other).sum())
    return max(0.0, 1 - float(np.abs(one - other).sum()) / max(spread, 1e-9))


class PipelineStage:
    """A stage of a pipeline: its results are compared (``heimdall.lab.likeness``). Earlier
    stages run whole, by onnxruntime."""

    def __init__(
        self, pipeline: Pipeline[Any], graphs: Sequence[Graph], stage: int, threads: int = 1
    ) -> None:
        """``stage`` from 0. Raises ConfigError where the pipeline has no such stage."""
        if not 0 <= stage < len(graphs):
            raise ConfigError(f"there are stages 1 to {len(graphs)}, and no stage {stage + 1}")
        pipeline.bind(graphs)
        self.graph = graphs[stage]
        self.judged_by = "the results that come of it"
        self._pipeline, self._stage = pipeline, stage
        self._earlier = [opened(each.model, threads) for each in graphs[:stage]]

    def prepare(self, image: np.ndarray) -> Sequence[Prepared]:
        walk = Walk(self._pipeline, image, {})
        for session in self._earlier:
            walk.decode([_run(session, task.inputs) for task in walk.prepare()])
            if walk.ended:
                return ()
        return walk.prepare()

    def alike(self, answer: Tensors, whole: Tensors, context: Any) -> float | None:
        found, truth = (
            self._pipeline.decode(self._stage, outputs, context) for outputs in (answer, whole)
        )
        try:
            return likeness(found, truth)
        except TypeError as error:
            why = f"{self.graph.name}: {error}: give the file of the network"
            raise ConfigError(why) from error


def _run(session: ort.InferenceSession, inputs: Mapping[str, np.ndarray]) -> Tensors:
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))
