"""Models stored in float16 or bfloat16 become float32: engines decide what they compute in."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

_HALF = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_TYPES = ("to", "dtype", "output_dtype")  # attributes that name an element type


def widen(model: onnx.ModelProto) -> None:
    """Make every half-precision tensor of a model float32: weights, what nodes are told to make,
    inputs and outputs."""
    graph = model.graph
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
