"""Weights apart from the model that names them.

A ModelProto copies them when it is parsed, and again when they are asked for, each time into new
memory: of the 80 ms that reading nanodet took, 50 went there. Read by themselves they are one
array. Engines that run ONNX get the whole model, made when they load it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod

import numpy as np
import onnx

_LEAST_BYTES = 1024  # smaller ones stay in the model


def detach(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Take its large float32 weights out of ``model``, one by one: two copies of all are too much.
    They cannot be written."""
    taken = {}
    for item in model.graph.initializer:
        if item.data_type == onnx.TensorProto.FLOAT and len(item.raw_data) >= _LEAST_BYTES:
            taken[item.name] = np.frombuffer(item.raw_data, np.float32).reshape(item.dims)
            item.ClearField("raw_data")
    return taken


def arrays(bare: onnx.ModelProto, floats: np.ndarray) -> dict[str, np.ndarray]:
    """The detached weights by name, as views of all of them. They cannot be written."""
    floats.flags.writeable = False
    found, start = {}, 0
    for item in _detached(bare):
        end = start + prod(item.dims)
        found[item.name] = floats[start:end].reshape(item.dims)
        start = end
    return found


def attach(bare: onnx.ModelProto, constants: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """A copy of ``bare`` with the detached weights in their places again."""
    model = onnx.ModelProto()
    model.CopyFrom(bare)
    for item in _detached(model):
        item.raw_data = constants[item.name].tobytes()
    return model


def stored(
    bare: onnx.ModelProto, constants: Mapping[str, np.ndarray], names: Collection[str]
) -> list[onnx.TensorProto]:
    """Copies of these of a model's constants, with the detached weights in their places again."""
    part = onnx.ModelProto()
    part.graph.initializer.extend(each for each in bare.graph.initializer if each.name in names)
    for item in _detached(part):
        item.raw_data = constants[item.name].tobytes()
    return list(part.graph.initializer)


def _detached(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """The tensors that have no numbers, and should have."""
    for item in model.graph.initializer:
        large = item.data_type == onnx.TensorProto.FLOAT and 4 * prod(item.dims) >= _LEAST_BYTES
        if large and not item.float_data and not item.HasField("raw_data"):
            yield item
