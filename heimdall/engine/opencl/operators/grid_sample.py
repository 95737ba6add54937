"""GridSample, a picture or volume read at computed places, and AffineGrid, which computes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input, operands
from heimdall.engine.opencl.grid import chunked, ints, line_launch, source
from heimdall.engine.opencl.launch import Plan, Ref, Traits
from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.operators.products import product
from heimdall.engine.opencl.strided import Strided

_TAPS = {"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}
_PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True)
class GridSample(ArrayOp):
    """``taps`` an axis: 1 is nearest, 2 linear, 4 cubic. Inputs: x and the grid."""

    taps: int
    padding: str
    align: bool

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        (first, second), constants = operands(inputs, traits)
        size = inputs[0].shape[2:]
        kinds = {"taps": self.taps, "padding": self.padding, "align": self.align}
        kernel = source("grid_sample", traits, 1, axes=len(size), **kinds)
        chunk, items = chunked(y.size, 8 * self.taps ** len(size), traits)
        args = [*first, *second, *ints(*size, y.shape[1], math.prod(y.shape[2:]))]
        args += [Ref("y"), *ints(y.offset, y.size, chunk)]
        return Plan((line_launch(kernel, items, args, traits),), constants)

    def operations(self, inputs: Sequence[tuple[int, ...]], y: tuple[int, ...]) -> int:
        return 2 * math.prod(y) * self.taps ** (len(y) - 2)


@register("GridSample")
def _grid_sample(context: Context) -> list[Lowered] | None:
    taps = _TAPS.get(context.attribute("mode", "linear"))
    padding = context.attribute("padding_mode", "zeros")
    x, grid = (context.shape(name) for name in context.node.inputs)
    fits = grid[0] == x[0] and grid[-1] == len(x) - 2 and context.y == (*x[:2], *grid[1:-1])
    if taps is None or padding not in _PADDINGS or not fits:
        return None
    spec = GridSample(taps, padding, bool(context.attribute("align_corners", 0)))
    return [context.op(spec, *context.node.inputs)]


@register("AffineGrid")
def _affine_grid(context: Context) -> list[Lowered] | None:
    """The points of an even grid, each with a one behind it, times a matrix an image."""
    wanted, chain = context.ints(1, "size"), Chain(context)
    if wanted is None:
        return None
    size, aligned = wanted[2:], bool(context.attribute("align_corners", 0))
    lines = []
    for count in size:
        edge = 1.0 if aligned else 1.0 - 1.0 / count
        lines.append(np.linspace(-edge, edge, count))
    places = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*places[::-1], np.ones(size)], axis=-1).reshape(1, -1, len(size) + 1)
    matrices = chain.transpose(context.node.inputs[0], (0, 2, 1))
    return chain.end(product(chain, chain.constant(points), matrices))
