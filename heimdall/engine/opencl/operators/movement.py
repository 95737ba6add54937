"""Operators that only move data: reshape, slice, pad, concat, resize."""

from __future__ import annotations

import numpy as np

from heimdall.engine.opencl.lowered import (
    Cast,
    Concat,
    Expand,
    Gather,
    Linear,
    Lowered,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from heimdall.engine.opencl.operators.context import FLOAT, Context, register
from heimdall.engine.opencl.sampling import coordinates, linear_table, nearest


@register("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout")
def _reshape(context: Context) -> list[Lowered] | None:
    if len([name for name in context.node.outputs if name]) > 1:
        return None  # a Dropout whose mask is asked for
    return [context.op(Reshape(), context.node.inputs[0])]


@register("Cast")
def _cast(context: Context) -> list[Lowered] | None:
    source = context.node.inputs[0]
    if context.graph.tensors[source].dtype == FLOAT:
        return [context.op(Reshape(), source)]
    if source in [tensor.name for tensor in context.graph.inputs]:
        return [context.op(Cast(), source)]
    return None


@register("Transpose")
def _transpose(context: Context) -> list[Lowered]:
    perm = tuple(context.attribute("perm", range(len(context.x))[::-1]))
    return [context.op(Transpose(perm), context.node.inputs[0])]


@register("Expand")
def _expand(context: Context) -> list[Lowered]:
    return [context.op(Expand(), context.node.inputs[0])]


@register("Concat")
def _concat(context: Context) -> list[Lowered]:
    axis = context.attribute("axis") % len(context.y)
    return [context.op(Concat(axis), *context.node.inputs)]


@register("Split")
def _split(context: Context) -> list[Lowered]:
    axis = context.attribute("axis", 0) % len(context.x)
    ops, start, rank = [], 0, len(context.x)
    for name in context.node.outputs:
        starts = tuple(start if index == axis else 0 for index in range(rank))
        ops.append(context.op(Slice(starts, (1,) * rank), context.node.inputs[0], output=name))
        start += context.shape(name)[axis]
    return ops


@register("Slice")
def _slice(context: Context) -> list[Lowered] | None:
    rank = len(context.x)
    starts = context.ints(1, "starts")  # where it ends is in the output's shape
    unknown = any(context.has(index) and context.constant(index) is None for index in (3, 4))
    if starts is None or unknown:
        return None
    axes = context.ints(3, "axes") or list(range(len(starts)))
    steps = context.ints(4, "steps") or [1] * len(starts)
    first, step = [0] * rank, [1] * rank
    for axis, start, jump in zip(axes, starts, steps, strict=True):
        size = context.x[axis]
        start = start + size if start < 0 else start
        # unlike numpy, ONNX brings a start before the first index to that index
        first[axis], step[axis] = min(max(start, 0), size - 1), jump
    return [context.op(Slice(tuple(first), tuple(step)), context.node.inputs[0])]


@register("Pad")
def _pad(context: Context) -> list[Lowered] | None:
    pads = context.ints(1, "pads")
    mode = context.attribute("mode", "constant")
    fill = context.scalar(2) if context.has(2) else context.attribute("value", 0.0)
    if pads is None or fill is None or not context.is_picture() or context.has(3):
        return None
    if mode not in ("constant", "reflect", "edge") or pads[0] or pads[4]:
        return None
    if (mode != "constant" and (pads[1] or pads[5])) or (fill and (pads[1] or pads[5])):
        return None
    spec = Pad(mode, (pads[2], pads[3], pads[6], pads[7]), (pads[1], pads[5]), fill)
    return [context.op(spec, context.node.inputs[0])]


@register("Resize", "Upsample")
def _resize(context: Context) -> list[Lowered] | None:
    if not context.is_picture() or context.x[:2] != context.y[:2]:
        return None
    mode = context.attribute("mode", "nearest")
    old = context.node.op_type == "Upsample" or context.graph.opset < 11
    where = (
        "asymmetric" if old else context.attribute("coordinate_transformation_mode", "half_pixel")
    )
    if context.attribute("antialias", 0) or context.attribute("axes") is not None:
        return None
    scales = context.constant(1 if old else 2)
    if scales is None and context.has(1 if old else 2):
        return None  # they decide more than the output's size: which pixels are taken
    sources = []
    for axis in (2, 3):
        size, out = context.x[axis], context.y[axis]
        scale = float(scales[axis]) if scales is not None and scales.size == 4 else out / size
        source = coordinates(where, size, out, scale)
        if source is None:
            return None
        sources.append(source)
    if mode == "nearest":
        rounding = "floor" if old else context.attribute("nearest_mode", "round_prefer_floor")
        picked = [nearest(rounding, source) for source in sources]
        rows, columns = (
            tuple(int(i) for i in np.clip(index, 0, context.x[axis + 2] - 1))
            for axis, index in enumerate(picked)
        )
        return [context.op(Gather(rows, columns), context.node.inputs[0])]
    if mode != "linear":
        return None
    tables = [linear_table(source, context.x[axis + 2]) for axis, source in enumerate(sources)]
    return [context.op(Linear(tables[0], tables[1]), context.node.inputs[0])]
