"""Models stored in float16 or bfloat16 become float32: engines decide what they compute in.

A float32 model can be kept in half the bytes (``narrow``): its weights in float16, each with a
Cast to float32, which any ONNX runtime folds when it loads the file. Here the Cast goes before
anything is named or counted, so the graph is that of the float32 file, op by op.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import prod

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

_HALF = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_TYPES = ("to", "dtype", "output_dtype")  # attributes that name an element type
LEAST_VALUES = 256  # smaller weights are not worth a Cast
_LARGEST = float(np.finfo(np.float16).max)
_STORED = "__half"  # ends the name of a weight that is cast to the one that nodes read


def widen(model: onnx.ModelProto) -> None:
    """Make every half-precision tensor of a model float32: weights, what nodes are told to make,
    inputs and outputs. A weight that is cast to float32 takes the place of its Cast."""
    graph = model.graph
    _drop_casts(graph)
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type in _HALF:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for item in graph.initializer:
        _widen_tensor(item)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                _widen_tensor(attribute.t)
            elif attribute.name in _TYPES and attribute.i in _HALF:
                attribute.i = TensorProto.FLOAT


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type in _HALF:
        array = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def narrow(model: onnx.ModelProto, only: Collection[str] | None = None) -> float:
    """Store the float32 weights of a model in float16, those that fit its range, or of these
    ``only`` those that are named. Returns the largest error that rounding made, over the largest
    weight of its tensor: 0 where weights were rounded to half precision before, as in many a
    TensorFlow Lite file.
    """
    graph = model.graph
    _take_constants(graph)
    casts, worst = [], 0.0
    for item in graph.initializer:
        array = numpy_helper.to_array(item)
        if item.data_type != TensorProto.FLOAT or array.size < LEAST_VALUES:
            continue
        if only is not None and item.name not in only:
            continue
        largest = float(np.abs(array).max())
        if not largest <= _LARGEST:
            continue
        stored = array.astype(np.float16)
        worst = max(worst, float(np.abs(stored - array).max()) / max(largest, 1e-30))
        name = item.name
        item.CopyFrom(numpy_helper.from_array(stored, name + _STORED))
        casts.append(
            helper.make_node("Cast", [item.name], [name], name + "__cast", to=TensorProto.FLOAT)
        )
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return worst


def _drop_casts(graph: onnx.GraphProto) -> None:
    stored = {item.name: item for item in graph.initializer if item.data_type in _HALF}
    if not stored:
        return
    readers = Counter(name for node in graph.node for name in node.input)
    readers.update(value.name for value in graph.output)
    kept = []
    for node in graph.node:
        name = node.input[0] if node.op_type == "Cast" and node.input else ""
        to_float = any(each.name == "to" and each.i == TensorProto.FLOAT for each in node.attribute)
        if name in stored and to_float and readers[name] == 1:
            stored[name].name = node.output[0]
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)


def _take_constants(graph: onnx.GraphProto) -> None:
    """Weights that are nodes become initialisers."""
    kept = []
    for node in graph.node:
        tensors = [each.t for each in node.attribute if each.name == "value"]
        if node.op_type != "Constant" or not tensors or prod(tensors[0].dims) < LEAST_VALUES:
            kept.append(node)
            continue
        item = graph.initializer.add()
        item.CopyFrom(tensors[0])
        item.name = node.output[0]
    del graph.node[:]
    graph.node.extend(kept)
