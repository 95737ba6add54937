"""Ready ``decode`` functions for your own model: heat maps, masks and embeddings.

Boxes are in ``boxes``. Each is bound to the model's outputs when the app starts, so that one that
does not fit is explained before the first frame. All lead back to frame pixels, whether the
picture was letterboxed or stretched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.errors import ConfigError, ModelError, unknown
from heimdall.graph.graph import Graph, Tensor
from heimdall.models.image_input import stretched
from heimdall.models.letterbox import Letterbox
from heimdall.models.results import Mask

ACTIVATIONS = ("none", "sigmoid", "softmax")


class Decoder:
    """What the ready decoders share: which outputs they read, and the way back to the frame."""

    wants = ""  # the outputs in words

    def bind(self, graph: Graph) -> None:
        """Check that the model's outputs are what this decoder reads. ModelError says how they
        differ."""
        self._graph_name = graph.name
        self._input = input_size(graph)
        self._check(graph.results)

    def _check(self, outputs: Sequence[Tensor]) -> None:
        raise NotImplementedError

    def _mismatch(self, outputs: Sequence[Tensor], hint: str = "") -> ModelError:
        found = ", ".join(f"{each.name!r} {list(each.shape)}" for each in outputs)
        return ModelError(
            f"{type(self).__name__} decodes {self.wants}; {self._graph_name} has {found}"
            + (f": {hint}" if hint else "")
        )

    def _skew(self, shape: Sequence[int], *, last: bool) -> float:
        """How far (log of the ratio) maps of that ``shape`` are from the picture's aspect ratio,
        if their channels come first, or ``last``."""
        height, width = shape[1:3] if last else shape[2:]
        return abs(math.log(height * self._input[1] / (width * self._input[0])))

    def _placement(self, context: Any) -> Letterbox:
        """What preprocess left: a Letterbox, or the frame's (height, width): then the frame
        fills the input."""
        if isinstance(context, Letterbox):
            return context
        return stretched(context, self._input)


class HeatMaps(Decoder):
    """One point a channel, at its peak. Result: (k, 3) float32, x and y in frame pixels, score.

    For outputs of shape (1, k, h, w), ``channels_last``: (1, h, w, k). ``Scene.skeleton`` draws
    the points.
    """

    wants = "one output of shape (1, points, height, width)"

    def __init__(self, *, channels_last: bool = False) -> None:
        self._last = channels_last

    def _check(self, outputs: Sequence[Tensor]) -> None:
        if len(outputs) != 1 or len(outputs[0].shape) != 4 or outputs[0].shape[0] != 1:
            raise self._mismatch(outputs)
        given, other = (
            self._skew(outputs[0].shape, last=last) for last in (self._last, not self._last)
        )
        if given > other + 0.25:  # maps are rarely padded by more
            raise self._mismatch(outputs, f"set channels_last={not self._last}")
        self._name = outputs[0].name

    def __call__(self, outputs: Mapping[str, np.ndarray], context: Any) -> np.ndarray:
        maps = outputs[self._name][0]
        maps = maps.transpose(2, 0, 1) if self._last else maps
        count, height, width = maps.shape
        peaks = maps.reshape(count, -1).argmax(axis=1)
        rows, columns = np.divmod(peaks, width)
        every = np.arange(count)
        # A quarter of a cell towards the higher neighbour: peaks lie between cells.
        right = maps[every, rows, np.minimum(columns + 1, width - 1)]
        left = maps[every, rows, np.maximum(columns - 1, 0)]
        below = maps[every, np.minimum(rows + 1, height - 1), columns]
        above = maps[every, np.maximum(rows - 1, 0), columns]
        cells = np.stack([columns + 0.5 + np.sign(right - left) / 4,
                          rows + 0.5 + np.sign(below - above) / 4], axis=1)  # fmt: skip
        down, across = self._input
        points = self._placement(context).to_frame(cells * (across / width, down / height))
        scores = maps[every, rows, columns]
        return np.column_stack([points, scores]).astype(np.float32)


class Masks(Decoder):
    """The probability of one class. Result: Mask, over the whole frame.

    For outputs of shape (1, classes, h, w) or (1, h, w, classes); ``channel`` is the class,
    ``activation`` what makes probabilities of the output: "none", "sigmoid", or "softmax" over
    the classes. Without ``channels_last`` the picture's aspect ratio says where the classes are;
    if both orders fit, it is that of the input.
    """

    wants = "one output of shape (1, classes, height, width) or (1, height, width, classes)"

    def __init__(
        self, channel: int = 0, *, activation: str = "none", channels_last: bool | None = None
    ) -> None:
        if activation not in ACTIVATIONS:
            raise ConfigError(unknown("activation of a mask", activation, ACTIVATIONS))
        self._channel, self._activation, self._given = channel, activation, channels_last

    def bind(self, graph: Graph) -> None:
        self._input_last = graph.inputs[0].shape[-1] in (1, 3)
        super().bind(graph)

    def _check(self, outputs: Sequence[Tensor]) -> None:
        if len(outputs) != 1 or len(outputs[0].shape) != 4 or outputs[0].shape[0] != 1:
            raise self._mismatch(outputs)
        (output,) = outputs
        self._last = self._channels_last(output.shape) if self._given is None else self._given
        classes = output.shape[3 if self._last else 1]
        if not 0 <= self._channel < classes:
            raise self._mismatch(outputs, f"channel {self._channel} is none of its {classes}")
        self._name = output.name

    def _channels_last(self, shape: Sequence[int]) -> bool:
        first, last = (self._skew(shape, last=last) for last in (False, True))
        if abs(first - last) < 0.01:
            return self._input_last
        return last < first

    def __call__(self, outputs: Mapping[str, np.ndarray], context: Any) -> Mask:
        maps = outputs[self._name][0]
        maps = maps.transpose(2, 0, 1) if self._last else maps
        if self._activation == "softmax":
            weights = np.exp(maps - maps.max(axis=0))
            values = weights[self._channel] / weights.sum(axis=0)
        elif self._activation == "sigmoid":
            values = 1 / (1 + np.exp(-maps[self._channel]))
        else:
            values = maps[self._channel]
        return Mask(np.ascontiguousarray(self._without_border(values, context), np.float32))

    def _without_border(self, values: np.ndarray, context: Any) -> np.ndarray:
        placement = self._placement(context)
        down, across = values.shape[0] / self._input[0], values.shape[1] / self._input[1]
        width, height = placement.inner
        top, left = round(placement.top * down), round(placement.left * across)
        bottom, right = top + round(height * down), left + round(width * across)
        return values[top : max(bottom, top + 1), left : max(right, left + 1)]


class Embedding(Decoder):
    """A vector that says what the picture shows. Result: (d,) float32 of length 1, so that the
    dot product of two is their cosine similarity."""

    wants = "one output of one vector, (1, size)"

    def _check(self, outputs: Sequence[Tensor]) -> None:
        if len(outputs) != 1 or outputs[0].shape[0] != 1 or max(outputs[0].shape) < 2:
            raise self._mismatch(outputs)
        if np.prod(outputs[0].shape) != max(outputs[0].shape):
            raise self._mismatch(outputs, "that is more than one vector; write a decode function")
        self._name = outputs[0].name

    def __call__(self, outputs: Mapping[str, np.ndarray], context: Any) -> np.ndarray:
        vector = outputs[self._name].ravel().astype(np.float32)
        return vector / max(float(np.linalg.norm(vector)), 1e-12)


def input_size(graph: Graph) -> tuple[int, int]:
    """Height and width of a model's picture. Raises ModelError when it has none."""
    shape = graph.inputs[0].shape
    if len(shape) != 4:
        raise ModelError(
            f"input {graph.inputs[0].name!r} of {graph.name} is {list(shape)}, no picture: write a "
            "decode function"
        )
    return (shape[2], shape[3]) if shape[1] in (1, 3) else (shape[1], shape[2])
