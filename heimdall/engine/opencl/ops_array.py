"""Plans of operators over row-major arrays, and between them and pictures."""

from __future__ import annotations

import math

import numpy as np

from heimdall.engine.opencl.grid import Grid, chunked, ints, line_launch, pointer, source
from heimdall.engine.opencl.launch import Plan, Ref, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.lowered import Reduce
from heimdall.engine.opencl.ops_picture import JOINS
from heimdall.engine.opencl.strided import Strided, collapse


def plan_pack(array: Strided, picture: Layout, traits: Traits, *, unpack: bool = False) -> Plan:
    """Array of shape (1, C, H, W) to picture, or back. Refs: "array", "picture"."""
    grid = Grid.over(picture.width, picture.height, picture.blocks, traits)
    args = [Ref("array"), *ints(array.offset, *array.strides[1:], picture.channels)]
    kernel = source("pack", traits, picture.block, unpack=unpack)
    return Plan((grid.launch(kernel, [*args, *pointer("picture", picture), *grid.args]),))


def plan_reduce_array(spec: Reduce, x: Strided, y: Strided, traits: Traits) -> Plan:
    """Refs: "i0", "y" (contiguous)."""
    join, start = JOINS[spec.mode]
    rest = [axis for axis in range(len(x.shape)) if axis not in spec.axes]
    kept, (steps,) = collapse(*_pick(x, rest))
    deep, (deep_steps,) = collapse(*_pick(x, list(spec.axes)))
    args = [Ref("i0"), *ints(x.offset)]
    for sizes, strides in ((kept, steps), (deep, deep_steps)):
        for size, stride in zip(sizes, strides, strict=True):
            args += ints(size, stride)
    count = math.prod(deep)
    outputs = math.prod(kept)
    chunk, items = chunked(outputs, count, traits)
    factor = np.float32(1.0 / count if spec.mode == "mean" else 1.0)
    args += [Ref("y"), *ints(y.offset, outputs, chunk), factor]
    kernel = source(
        "reduce_array", traits, 1, join=join, start=start, kept=len(kept), reduced=len(deep)
    )
    return Plan((line_launch(kernel, items, args, traits),))


def _pick(x: Strided, axes: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(x.shape[axis] for axis in axes), tuple(x.strides[axis] for axis in axes)
