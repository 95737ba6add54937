"""Convolutions, matrix products, pooling and reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.lowered import (
    Conv,
    Lowered,
    Lrn,
    MatMul,
    Pool,
    Reduce,
    Reshape,
    Softmax,
)
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.operators.elementwise import elementwise


def _pads(
    context: Context, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, int, int, int] | None:
    """(top, left, bottom, right) from ``pads`` or ``auto_pad``."""
    mode = context.attribute("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = context.attribute("pads", [0, 0, 0, 0])
        return (pads[0], pads[1], pads[2], pads[3])
    if mode == "VALID":
        return (0, 0, 0, 0)
    sides = []
    for axis in (0, 1):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        size = context.x[axis + 2]
        total = max(0, (-(-size // strides[axis]) - 1) * strides[axis] + reach - size)
        small, large = total // 2, total - total // 2
        sides.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return (sides[0][0], sides[1][0], sides[0][1], sides[1][1])


@register("Conv", "ConvTranspose")
def _conv(context: Context) -> list[Lowered] | None:
    weights, bias = context.constant(1), context.constant(2)
    if weights is None or (context.has(2) and bias is None) or not context.is_picture():
        return None
    if weights.ndim != 4:
        return None
    transposed = context.node.op_type == "ConvTranspose"
    kernel = (weights.shape[2], weights.shape[3])
    strides = tuple(context.attribute("strides", [1, 1]))
    dilations = tuple(context.attribute("dilations", [1, 1]))
    pads = _pads(context, kernel, strides, dilations)
    if transposed and (
        context.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
        or context.attribute("output_shape")
    ):
        return None
    if pads is None or min(pads) < 0:
        return None
    spec = ConvSpec(
        kernel, strides, dilations, pads, context.attribute("group", 1), transposed=transposed
    )
    return [context.op(Conv(spec, weights, bias), context.node.inputs[0])]


@register("Gemm")
def _gemm(context: Context) -> list[Lowered] | None:
    weights = context.constant(1)
    if weights is None or len(context.x) != 2 or context.attribute("transA", 0):
        return None
    if not context.attribute("transB", 0):
        weights = weights.T
    weights = weights * np.float32(context.attribute("alpha", 1.0))
    bias = None
    if context.has(2):
        array = context.constant(2)
        if array is None or (array.ndim == 2 and array.shape[0] > 1):
            return None
        bias = np.broadcast_to(array.reshape(-1), weights.shape[:1])
        bias = bias * np.float32(context.attribute("beta", 1.0))
    return _dense(context, weights, bias)


@register("MatMul")
def _matmul(context: Context) -> list[Lowered] | None:
    weights = context.constant(1)
    if weights is not None and weights.ndim == 2 and len(context.x) >= 2:
        return _dense(context, weights.T, None)
    a, b = context.node.inputs
    ranks = len(context.shape(a)), len(context.shape(b))
    if context.constant(0) is not None or weights is not None or min(ranks) < 2:
        return None
    if context.shape(a)[:-2] != context.shape(b)[:-2]:
        return None
    return [context.op(MatMul(), a, b)]


def _dense(context: Context, weights: np.ndarray, bias: np.ndarray | None) -> list[Lowered]:
    """A product with a constant (N, K) matrix, as a 1x1 convolution.

    A single row is a picture of one pixel; several rows stay row-major.
    """
    rows = math.prod(context.x[:-1])
    kernel = np.ascontiguousarray(weights, np.float32).reshape(*weights.shape, 1, 1)
    conv = Conv(ConvSpec((1, 1)), kernel, bias, matrix=rows > 1)
    x = context.node.inputs[0]
    if rows > 1:
        return [context.op(conv, x)]
    column = context.tensor("column", (1, weights.shape[1], 1, 1))
    pixel = context.tensor("pixel", (1, weights.shape[0], 1, 1))
    return [
        context.op(Reshape(), x, output=column),
        context.op(conv, column, output=pixel),
        context.op(Reshape(), pixel),
    ]


# --- pooling and reductions ----------------------------------------------------------------


@register("MaxPool", "AveragePool")
def _pool(context: Context) -> list[Lowered] | None:
    if not context.is_picture() or len([name for name in context.node.outputs if name]) > 1:
        return None
    kernel = tuple(context.attribute("kernel_shape"))
    strides = tuple(context.attribute("strides", [1, 1]))
    dilations = tuple(context.attribute("dilations", [1, 1]))
    pads = _pads(context, kernel, strides, dilations)
    average = context.node.op_type == "AveragePool"
    counted = bool(context.attribute("count_include_pad", 0))
    if pads is None or (counted and context.attribute("ceil_mode", 0)):
        return None
    if average and kernel == context.x[2:] and not any(pads):
        return [context.op(Reduce("mean", (2, 3)), context.node.inputs[0])]
    mode: Literal["average", "max"] = "average" if average else "max"
    return [
        context.op(Pool(mode, kernel, strides, pads, dilations, counted), context.node.inputs[0])
    ]


@register("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(context: Context) -> list[Lowered] | None:
    if not context.is_picture():
        return None
    mode: Literal["mean", "max"] = "mean" if context.node.op_type == "GlobalAveragePool" else "max"
    return [context.op(Reduce(mode, (2, 3)), context.node.inputs[0])]


@register("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
def _reduce(context: Context) -> list[Lowered] | None:
    axes = context.ints(1, "axes")
    if context.has(1) and axes is None:
        return None
    rank = len(context.x)
    if not axes:
        if context.attribute("noop_with_empty_axes", 0):
            return [elementwise(context, "identity", context.node.inputs[0])]
        axes = list(range(rank))
    normal = tuple(sorted(axis % rank for axis in axes))
    mode = context.node.op_type.removeprefix("Reduce").lower()
    return [context.op(Reduce(mode, normal), context.node.inputs[0])]  # type: ignore[arg-type]


@register("Softmax", "LogSoftmax")
def _softmax(context: Context) -> list[Lowered] | None:
    rank = len(context.x)
    old = context.graph.opset < 13
    axis = context.attribute("axis", 1 if old else -1) % rank
    if old and math.prod(context.x[axis + 1 :]) != 1:
        return None  # before opset 13 all axes from ``axis`` on are one
    return [context.op(Softmax(axis, context.node.op_type == "LogSoftmax"), context.node.inputs[0])]


@register("LRN")
def _lrn(context: Context) -> list[Lowered] | None:
    if not context.is_picture():
        return None
    get = context.attribute
    spec = Lrn(get("size"), get("alpha", 1e-4), get("beta", 0.75), get("bias", 1.0))
    return [context.op(spec, context.node.inputs[0])]
