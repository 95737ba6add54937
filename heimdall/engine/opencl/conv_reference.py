"""What a convolution computes, by onnxruntime and numpy: what its kernels are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine.opencl.activation import Activation
from heimdall.engine.opencl.conv_spec import Layer
from heimdall.graph.sessions import open_session


def reference(layer: Layer, x: np.ndarray, residual: np.ndarray | None) -> np.ndarray:
    """The layer's output for ``x`` and ``residual``; all are float32 of shape (channels, h, w)."""
    spec, bias = layer.spec, layer.bias
    if spec.order:
        x = x[list(spec.order)]
    attributes: dict[str, Any] = {
        "kernel_shape": spec.kernel,
        "strides": spec.strides,
        "dilations": spec.dilations,
        "pads": spec.pads,
        "group": spec.groups,
    }
    if spec.transposed:
        size, least = (layer.y.height, layer.y.width), spec.output_size(*x.shape[1:])
        attributes["output_padding"] = [has - needs for has, needs in zip(size, least, strict=True)]
    weights = {"w": layer.weights} if bias is None else {"w": layer.weights, "b": bias.ravel()}
    node = helper.make_node(
        "ConvTranspose" if spec.transposed else "Conv", ["x", *weights], ["y"], **attributes
    )
    graph = helper.make_graph(
        [node],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, *x.shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.ascontiguousarray(each, np.float32), name)
            for name, each in weights.items()
        ],
    )
    opset = helper.make_opsetid("", 13)
    session = open_session(helper.make_model(graph, opset_imports=[opset], ir_version=8))
    (values,) = session.run(None, {"x": np.ascontiguousarray(x[None], np.float32)})
    values = values[0]
    if residual is not None and spec.residual_before_activation:
        return _activated(values + residual, spec.activation)
    values = _activated(values, spec.activation)
    return values if residual is None else values + residual


def _activated(v: np.ndarray, activation: Activation) -> np.ndarray:
    p, q = np.float32(activation.p), np.float32(activation.q)
    s = np.asarray(activation.lanes, np.float32).reshape(-1, 1, 1)
    match activation.kind:
        case "none":
            return v
        case "relu":
            return np.maximum(v, 0)
        case "clip":
            return np.clip(v, p, q)
        case "prelu":
            return np.where(v < 0, v * s, v)
        case "hard_sigmoid":
            return np.clip(p * v + q, 0, 1)
        case "hard_swish":
            return v * np.clip(p * v + q, 0, 1)
        case "shifted_hard_swish":
            return v * np.clip(p * v + q, 0, 1) + s
        case "sigmoid":
            return 0.5 * (1 + np.tanh(v / 2))
        case "silu":
            return 0.5 * v * (1 + np.tanh(v / 2))
        case "tanh":
            return np.tanh(v)
        case "whole":
            return np.clip(np.rint(v), p, q)
        case "scaled":
            return v * s
        case "rounded":
            return np.rint(v * s)
        case "requantised":
            return np.rint(np.clip(v * s, p, q))
