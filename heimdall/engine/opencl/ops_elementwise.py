"""Fused elementwise expressions, over pictures in channel blocks and over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, cast

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, operands
from heimdall.engine.opencl.expression import Expression, Step
from heimdall.engine.opencl.grid import Grid, chunked, ints, line_launch, source
from heimdall.engine.opencl.kernel_op import Input, Inputs, Layouts, PictureOp, Shape, Shapes, only
from heimdall.engine.opencl.launch import Arg, Plan, Ref, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.strided import Strided, broadcasts, collapse


@dataclass(frozen=True)
class Elementwise(PictureOp, ArrayOp):
    """One expression over operands that broadcast to the output."""

    expression: Expression

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        """``inputs`` are pictures or constants, each of y's size or 1 along every axis."""
        expression, y = self.expression, outputs[0]
        read = [_operand(index, value, y, traits) for index, value in enumerate(inputs)]
        flat = y.dense and all(operand.flat for operand in read)
        width, height = (y.width * y.height, 1) if flat else (y.width, y.height)
        grid = Grid.over(width, height, y.blocks, traits)
        args: list[Arg] = []
        for operand in read:
            args += [Ref(operand.ref), *ints(*operand.steps)]
        args += [np.float32(value) for value in expression.scalars]
        lanes = y.channels - (y.blocks - 1) * y.block
        args += [Ref("y"), *ints(y.origin, y.plane, y.row, lanes, y.blocks), *grid.args]
        # idle lanes get what one channel gives to all of them, which may be infinite
        spread = any(operand.mode == "splat" for operand in read)
        kernel = source(
            "elementwise_picture",
            traits,
            y.block,
            code=expression.code,
            result=f"t{len(expression.steps) - 1}",
            modes=tuple(operand.mode for operand in read),
            scalars=len(expression.scalars),
            mask=(expression.may_overflow or spread) and lanes < y.block,
        )
        constants = {
            op.ref: op.constant.astype(traits.dtype, copy=False)
            for op in read
            if op.constant is not None
        }
        return Plan((grid.launch(kernel, args),), constants)

    def plan(self, inputs: Inputs, y: Strided, traits: Traits) -> Plan:
        """``inputs`` broadcast to y's shape."""
        expression, arrays = self.expression, cast("Sequence[Strided | np.ndarray]", inputs)
        if (layouts := _as_vectors(arrays, y, traits)) is not None:
            return self.plan_pictures(layouts[1:], layouts[:1], traits)
        bases, constants = operands(arrays, traits)
        views = [
            (Strided.contiguous(x.shape) if isinstance(x, np.ndarray) else x).broadcast(y.shape)
            for x in arrays
        ]
        sizes, (y_steps, *steps) = collapse(y.shape, y.strides, *(view.strides for view in views))
        args = [arg for base, own in zip(bases, steps, strict=True) for arg in (*base, *ints(*own))]
        args += [np.float32(value) for value in expression.scalars]
        args += [Ref("y"), np.int32(y.offset)]
        for step, size in zip(y_steps, sizes, strict=True):
            args += ints(step, size)
        outer = prod(sizes[:-1])
        chunk, items = chunked(outer, sizes[-1], traits)
        kernel = source(
            "elementwise_array",
            traits,
            1,
            code=expression.code,
            result=f"t{len(expression.steps) - 1}",
            operands=len(inputs),
            scalars=len(expression.scalars),
            axes=len(sizes),
        )
        return Plan((line_launch(kernel, items, args + ints(outer, chunk), traits),), constants)

    @property
    def step(self) -> Step | None:
        steps = self.expression.steps
        return steps[0] if len(steps) == 1 else None

    def operations(self, inputs: Shapes, y: Shape) -> int:
        return prod(y) * len(self.expression.steps)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (y,) = outputs
        if self.expression.arity != len(inputs) or not all(broadcasts(x, y) for x in inputs):
            return False
        return y in inputs or prod(np.broadcast_shapes(*inputs)) == prod(y)


class _Operand(NamedTuple):
    """How the kernel reads one input: base, plane, row and pixel steps."""

    ref: str
    mode: str
    steps: tuple[int, int, int, int]
    flat: bool
    constant: np.ndarray | None


def _operand(index: int, value: Input, y: Layout, traits: Traits) -> _Operand:
    constant = None
    if isinstance(value, np.ndarray):
        shape = (1,) * (4 - value.ndim) + value.shape
        _, channels, height, width = shape
        layout = Layout(channels, height, width, traits.block)
        constant = layout.pack(value.reshape(channels, height, width))
        # one in the padding lanes: a division by them stays finite
        constant = np.where(layout.pack(np.ones(shape[1:], np.float32)) == 0, 1, constant)
        ref = f"c{index}"
    else:
        layout, ref = only([value]), f"i{index}"
    splat = layout.channels == 1 and y.channels > 1
    plane = 0 if splat or layout.channels == 1 else layout.plane
    whole = (layout.height, layout.width) == (y.height, y.width)
    if layout.dense and not whole and layout.height == layout.width == 1 and not splat:
        return _Operand(ref, "channel", (layout.origin, plane, 0, 0), True, constant)
    row = layout.row if layout.height > 1 else 0
    # a picture one pixel wide is read down its column when rows are joined
    pixel = layout.block if layout.width > 1 or whole else 0
    flat = layout.dense and (whole or layout.height == layout.width == 1)
    mode = "splat" if splat else "pixel"
    return _Operand(ref, mode, (layout.origin, plane, row, pixel), flat, constant)


def _as_vectors(
    inputs: Sequence[Strided | np.ndarray], y: Strided, traits: Traits
) -> list[Layout] | None:
    """y and the inputs as rows of whole vectors, where all are contiguous and alike."""
    layouts = []
    for array in (y, *inputs):
        if isinstance(array, np.ndarray) or array.shape != y.shape or not array.is_contiguous:
            return None
        if y.size % traits.block or array.offset % traits.block:
            return None
        width = y.size // traits.block
        layouts.append(Layout(traits.block, 1, width, traits.block, offset=array.offset))
    return layouts
