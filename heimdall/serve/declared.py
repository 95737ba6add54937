"""A network as its file declares it: what is half precision there, and whether its batch is free.

The engines compute in float32, on the batch that a network was loaded with, which is 1 where the
file leaves it free. A server speaks for the file: its types, and -1 for a free batch, whose rows
are inferences of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np
import onnx
from onnx import TensorProto

from heimdall.graph.graph import Tensor
from heimdall.serve.models import Tensors

FREE = -1  # a batch of any size
Answer = Future[dict[str, np.ndarray]]
Join = Callable[[Sequence[Mapping[str, np.ndarray]]], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Declared:
    """Inputs and outputs as the file has them. Those ``by_row`` have a free batch."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    by_row: Collection[str] = ()

    def rows(self, given: Tensors) -> int:
        """How many inferences a request is."""
        return next((len(array) for name, array in given.items() if name in self.by_row), 1)

    def row(self, given: Tensors, index: int) -> dict[str, np.ndarray]:
        """The inputs of one of them, as the engines take them."""
        return {
            name: _wide(array[index : index + 1] if name in self.by_row else array)
            for name, array in given.items()
        }

    def gathered(self, answers: Sequence[Answer]) -> Answer:
        """One answer of all rows', in their order; what goes wrong with one goes wrong with it.
        Cancelled, it cancels them."""
        return _gathered(answers, self._joined)

    def _joined(self, rows: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        types = {tensor.name: tensor.dtype for tensor in self.outputs}
        found = {}
        for name in rows[0]:
            parts = [row[name] for row in rows]
            whole = np.concatenate(parts) if name in self.by_row else parts[0]
            found[name] = whole.astype(types.get(name, whole.dtype), copy=False)
        return found


def declared(
    path: Path,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    shapes: Collection[str] = (),
) -> Declared:
    """What a file says of a network that was loaded from it. ``shapes``: the inputs whose shape was
    given. A batch is free where the first dimension of inputs has no size, and that of each output
    is the same one."""
    graph = onnx.load(path, load_external_data=False).graph
    said = {value.name: value.type.tensor_type for value in (*graph.input, *graph.output)}
    batches = {
        tensor.name: _batch(said[tensor.name])
        for tensor in (*inputs, *outputs)
        if tensor.name in said and tensor.shape[:1] == (1,) and tensor.name not in shapes
    }
    of_inputs = {batches[each.name] for each in inputs if batches.get(each.name) is not None}
    by_row: set[str] = set()
    if len(of_inputs) == 1 and all(batches.get(each.name) in of_inputs for each in outputs):
        by_row = {name for name, batch in batches.items() if batch in of_inputs}

    def shown(tensor: Tensor) -> Tensor:
        kind = said.get(tensor.name)
        if kind is not None and kind.elem_type == TensorProto.FLOAT16:
            tensor = replace(tensor, dtype=np.dtype(np.float16))
        if tensor.name in by_row:
            tensor = replace(tensor, shape=(FREE, *tensor.shape[1:]))
        return tensor

    return Declared(tuple(map(shown, inputs)), tuple(map(shown, outputs)), frozenset(by_row))


def _batch(kind: onnx.TypeProto.Tensor) -> str | None:
    """The name of a free first dimension, which may be empty; None where it has a size."""
    dims = kind.shape.dim
    return None if not dims or dims[0].dim_value > 0 else str(dims[0].dim_param)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _gathered(answers: Sequence[Answer], join: Join) -> Answer:
    """See ``Declared.gathered``."""
    whole: Answer = Future()
    left, lock = [len(answers)], Lock()

    def came(answer: Answer) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        with contextlib.suppress(InvalidStateError):  # another row was the first to fail
            if answer.cancelled():
                whole.cancel()
            elif (error := answer.exception()) is not None:
                whole.set_exception(error)
            elif last:
                whole.set_result(join([each.result() for each in answers]))

    def ended(_: Answer) -> None:
        for each in answers:
            each.cancel()

    whole.add_done_callback(ended)  # the first that fails ends the others
    for answer in answers:
        answer.add_done_callback(came)
    return whole
