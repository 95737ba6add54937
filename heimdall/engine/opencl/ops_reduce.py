"""Sums, means, extremes and products over axes: of pictures, and of arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp
from heimdall.engine.opencl.functions import extreme
from heimdall.engine.opencl.grid import Grid, chunked, ints, line_launch, pointer, source
from heimdall.engine.opencl.kernel_op import Inputs, Layouts, PictureOp, Shapes, only
from heimdall.engine.opencl.launch import Place, Plan, Ref, Traits
from heimdall.engine.opencl.strided import Strided, collapse

ReduceMode = Literal["sum", "mean", "max", "min", "prod"]
_JOINS = {
    "sum": ("a + b", "0.0f"),
    "mean": ("a + b", "0.0f"),
    "max": (extreme(">").format("b", "a"), "-INFINITY"),
    "min": (extreme("<").format("b", "a"), "INFINITY"),
    "prod": ("a * b", "1.0f"),
}


@dataclass(frozen=True)
class Reduce(PictureOp, ArrayOp):
    """Sum, mean, max, min or product over ``axes`` (kept as size one or dropped by shape)."""

    vectors = True

    mode: ReduceMode
    axes: tuple[int, ...]

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        """Over rows and columns."""
        x, y = only(inputs), outputs[0]
        grid = Grid.bands(x.width, x.height, x.blocks, traits)
        bands = grid.bands_per_block
        join, start = _JOINS[self.mode]
        kernel = source("reduce_picture", traits, x.block, join=join, start=start, whole=bands == 1)
        factor = np.float32(1.0 / (x.height * x.width) if self.mode == "mean" else 1.0)
        first = [*pointer("i0", x)]
        if bands == 1:
            args = [*first, Ref("y"), *ints(y.origin, 1), factor, *grid.args]
            return Plan((grid.launch(kernel, args),))
        args = [*first, Ref("scratch"), Place(), *ints(bands), np.float32(1.0), *grid.args]
        partial = grid.launch(kernel, args)
        rest = [Ref("scratch"), Place(), *ints(bands), factor, Ref("y"), *ints(y.origin, x.blocks)]
        merge = line_launch(replace(kernel, name="merge"), x.blocks, rest, traits)
        return Plan((partial, merge), scratch_floats=x.blocks * bands * x.block)

    def plan(self, inputs: Inputs, y: Strided, traits: Traits) -> Plan:
        (x,) = inputs
        assert isinstance(x, Strided)
        join, start = _JOINS[self.mode]
        rest = [axis for axis in range(len(x.shape)) if axis not in self.axes]
        kept, (steps,) = collapse(*_pick(x, rest))
        deep, (deep_steps,) = collapse(*_pick(x, list(self.axes)))
        args = [Ref("i0"), *ints(x.offset)]
        for sizes, strides in ((kept, steps), (deep, deep_steps)):
            for size, stride in zip(sizes, strides, strict=True):
                args += ints(size, stride)
        count = math.prod(deep)
        outputs = math.prod(kept)
        chunk, items = chunked(outputs, count, traits)
        factor = np.float32(1.0 / count if self.mode == "mean" else 1.0)
        args += [Ref("y"), *ints(y.offset, outputs, chunk), factor]
        kernel = source(
            "reduce_array", traits, 1, join=join, start=start, kept=len(kept), reduced=len(deep)
        )
        return Plan((line_launch(kernel, items, args, traits),))

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        kept = tuple(1 if axis in self.axes else size for axis, size in enumerate(x))
        dropped = tuple(size for axis, size in enumerate(x) if axis not in self.axes)
        return max(self.axes) < len(x) and y in (kept, dropped)

    @property
    def wants_pictures(self) -> bool:
        return self == Reduce("mean", (2, 3))


def _pick(x: Strided, axes: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(x.shape[axis] for axis in axes), tuple(x.strides[axis] for axis in axes)
