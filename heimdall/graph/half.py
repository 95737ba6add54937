"""Models stored in float16 or bfloat16 become float32: engines decide what they compute in.

A float32 model may be kept in half the bytes, its weights in float16, each with a Cast to float32
(``heimdall.lab.exits.storing``). The Cast goes before anything is named or counted, so the graph
is that of the float32 file, op by op.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from heimdall.graph.control_flow import nodes_of

_HALF = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_TYPES = ("to", "dtype", "output_dtype")  # attributes that name an element type


def widen(model: onnx.ModelProto) -> None:
    """Make every half-precision tensor of a model float32: weights, what nodes are told to make,
    inputs and outputs, also of graphs inside nodes. A weight that is cast to float32 takes the
    place of its Cast."""
    _drop_casts(model.graph)
    _widen_graph(model.graph)


def _widen_graph(graph: onnx.GraphProto) -> None:
    for value in [*graph.input, *graph.output, *graph.value_info]:
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
            for inner in [attribute.g, *attribute.graphs]:
                _widen_graph(inner)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type in _HALF:
        array = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _drop_casts(graph: onnx.GraphProto) -> None:
    stored = {item.name: item for item in graph.initializer if item.data_type in _HALF}
    if not stored:
        return
    readers = Counter(name for _, node in nodes_of(graph) for name in node.input)
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
