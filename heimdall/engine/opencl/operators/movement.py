"""Operators that only move data, as views where that is possible: reshape, slice, concat."""

from __future__ import annotations

from heimdall.engine.opencl.lowered import Concat, Expand, Lowered, Reshape, Slice, Transpose
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register


@register("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout")
def _reshape(context: Context) -> list[Lowered] | None:
    if len(context.outputs) > 1 or context.constant(2):
        return None  # a Dropout whose mask is asked for, or one that drops
    return [context.op(Reshape(), context.node.inputs[0])]


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


@register("DepthToSpace")
def _depth_to_space(context: Context) -> list[Lowered]:
    chain, size = Chain(context), context.attribute("blocksize")
    batch, channels, height, width = context.x
    if context.attribute("mode", "DCR") == "DCR":
        split, perm = (size, size, channels // size**2), (0, 3, 4, 1, 5, 2)
    else:
        split, perm = (channels // size**2, size, size), (0, 1, 4, 2, 5, 3)
    blocks = chain.reshape(context.node.inputs[0], (batch, *split, height, width))
    return chain.end(chain.transpose(blocks, perm))


@register("SpaceToDepth")
def _space_to_depth(context: Context) -> list[Lowered]:
    chain, size = Chain(context), context.attribute("blocksize")
    batch, channels, height, width = context.x
    shape = (batch, channels, height // size, size, width // size, size)
    blocks = chain.reshape(context.node.inputs[0], shape)
    return chain.end(chain.transpose(blocks, (0, 3, 5, 1, 2, 4)))
