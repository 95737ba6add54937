"""A pipeline of your own: any single-network ONNX file with two functions around it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from heimdall.errors import AppError, ModelError
from heimdall.graph.graph import Graph
from heimdall.graph.onnx_file import Inputs
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.memory import without_state

T = TypeVar("T")

Preprocess = Callable[[Any], Mapping[str, np.ndarray] | Prepared]  # of a picture, or a Sound
Decode = Callable[[Mapping[str, np.ndarray], Any], T] | Callable[[Mapping[str, np.ndarray]], T]


class OnnxPipeline(Pipeline[T]):
    """Run the ONNX file at ``path`` between ``preprocess`` and ``decode``.

    ``preprocess(image)`` gets a BGR frame and returns the input tensors by name, or a Prepared
    that carries a context as well; ``decode(outputs, context)`` turns the output tensors into
    the result. Without a context of its own, decode gets the frame's (height, width), or the Sound;
    a decode of one argument gets the outputs alone.
    ``shapes`` fixes free input dimensions by input name (a number: what that input always is);
    ``state`` names outputs that are inputs of the next inference: neither function sees these. Both
    are called from pool threads. One
    with a method ``bind(graph)`` is shown the model first, as the ready ones need: ImageInput,
    Boxes, HeatMaps, Masks, Embedding.
    """

    def __init__(
        self,
        path: str | Path,
        preprocess: Preprocess,
        decode: Decode[T],
        shapes: Inputs | None = None,
        state: Mapping[str, str] | None = None,
    ) -> None:
        path = Path(path).absolute()
        if not path.is_file():
            raise ModelError(f"no model file at {path}; check the path")
        self.networks = (Network(str(path), dict(shapes or {}), dict(state or {})),)
        self._preprocess, self._decode = preprocess, decode
        self._decodes = _of_two(decode)

    def bind(self, graphs: Sequence[Graph]) -> None:
        for part in (self._preprocess, self._decode):
            if hasattr(part, "bind"):
                part.bind(without_state(graphs[0], self.networks[0].state))

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        made = self._preprocess(image)
        if isinstance(made, Prepared):
            return [made]
        if not isinstance(made, Mapping):
            raise AppError(
                f"preprocess of {self.networks[0].path.name} must return a mapping of input "
                f"tensors or a Prepared, not {type(made).__name__}"
            )
        return [Prepared(made, image.shape[:2] if isinstance(image, np.ndarray) else image)]

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> T:
        return self._decodes(outputs, context)


def _of_two(decode: Decode[T]) -> Callable[[Mapping[str, np.ndarray], Any], T]:
    """``decode`` as a function of outputs and context. Raises AppError where it takes neither
    these two nor the outputs alone."""
    known: Any = decode
    try:
        signature = inspect.signature(known)
    except (TypeError, ValueError):  # no function, which is found elsewhere, or one that hides it
        return known  # type: ignore[no-any-return]
    if _takes(signature, 2):
        return known  # type: ignore[no-any-return]
    if _takes(signature, 1):
        return lambda outputs, context: known(outputs)
    raise AppError(
        f"decode{signature} cannot be called: write decode(outputs, size), where size is the "
        "picture's (height, width), or decode(outputs)"
    )


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
