"""What is in the picture: a decoder for classifiers, with early exits or without, and a small one
of pieces of clothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np

from heimdall.errors import ModelError
from heimdall.graph.exits import Outputs
from heimdall.graph.graph import Graph, Tensor
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.decoders import Decoder
from heimdall.models.letterbox import letterbox
from heimdall.models.results import Label

SIDE = 28


class Labels(Decoder):
    """The class with the largest score. Result: a Label.

    For one output of shape (1, classes), scores or probabilities, of whichever exit. Names are
    ``names``, else those of the model's metadata ``classes`` (a JSON list), else numbers.
    """

    wants = "one output of shape (1, classes)"

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = tuple(names)

    def bind(self, graph: Graph) -> None:
        super().bind(graph)
        (output,) = graph.results
        count = output.shape[1]
        names = self._names or class_names(graph) or tuple(map(str, range(count)))
        if len(names) != count:
            raise ModelError(f"{graph.name} has {count} classes, and there are {len(names)} names")
        self._names = names
        self._output = output.name
        self._whole = graph.exits[-1].name if graph.exits else ""
        self._scores = graph.producers[self._output].op_type != "Softmax"

    def _check(self, outputs: Sequence[Tensor]) -> None:
        if len(outputs) != 1 or len(outputs[0].shape) != 2 or outputs[0].shape[0] != 1:
            raise self._mismatch(outputs)

    def __call__(self, outputs: Mapping[str, np.ndarray], context: Any) -> Label:
        scores = outputs[self._output][0].astype(np.float64)
        if self._scores:
            scores = np.exp(scores - scores.max())
            scores /= scores.sum()
        best = int(scores.argmax())
        exit = outputs.exit if isinstance(outputs, Outputs) else self._whole
        return Label(self._names[best], float(scores[best]), exit)


def class_names(graph: Graph) -> tuple[str, ...]:
    """The names of a network's classes, of its metadata ``classes`` (a JSON list); else none."""
    try:
        found = json.loads(graph.metadata.get("classes", "[]"))
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


class Fashion(Pipeline[Label]):
    """Result: a Label: which of ten pieces of clothing fills the picture, light on black.

    A small network with early exits: under policies that use them, the Label says which was taken.
    """

    networks = (Network("fashion_exits_28.onnx"),)

    def __init__(self) -> None:
        self._labels = Labels()

    def bind(self, graphs: Sequence[Graph]) -> None:
        self._labels.bind(graphs[0])

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        canvas, placement = letterbox(image, SIDE, SIDE, centred=True)
        grey = cv2.cvtColor(canvas, cv2.COLOR_BGR2GRAY)
        return [Prepared({"image": grey[None, None] * np.float32(1 / 255)}, placement)]

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Label:
        return self._labels(outputs, context)
