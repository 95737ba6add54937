"""Ops over pictures in channel blocks: what is computed, and how, in a class each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Literal

import numpy as np

from heimdall.engine.opencl.grid import Grid, ints, line_launch, pointer, source
from heimdall.engine.opencl.kernel_op import Inputs, Layouts, PictureOp, Shape, Shapes, only
from heimdall.engine.opencl.launch import Place, Plan, Ref, Traits


@dataclass(frozen=True)
class Pool(PictureOp):
    """MaxPool or AveragePool; ``pads`` are (top, left, bottom, right)."""

    mode: Literal["max", "average"]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int] = (1, 1)
    count_pads: bool = False

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        x, y = only(inputs), outputs[0]
        grid = Grid.over(y.width, y.height, y.blocks, traits)
        args = [*pointer("i0", x), *ints(x.height, x.width), *pointer("y", y)]
        args += ints(*self.kernel, *self.strides, *self.dilations, *self.pads)
        counted = self.mode == "average" and self.count_pads
        unrolled = max(self.kernel) <= 3 and self.dilations == (1, 1)
        taps_h, taps_w = self.kernel if unrolled else (0, 0)
        window = {"counted": counted, "taps_h": taps_h, "taps_w": taps_w}
        kernel = source("pool", traits, y.block, mode=self.mode, **window)
        return Plan((grid.launch(kernel, args + grid.args),))

    def operations(self, inputs: Shapes, y: Shape) -> int:
        return prod(y) * prod(self.kernel)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        for axis, size in enumerate(x[2:]):
            reach = (self.kernel[axis] - 1) * self.dilations[axis] + 1
            room = size + self.pads[axis] + self.pads[axis + 2] - reach
            if y[axis + 2] - 1 not in (room // self.strides[axis], -(-room // self.strides[axis])):
                return False
        return len(x) == len(y) == 4 and x[:2] == y[:2]


@dataclass(frozen=True)
class Gather(PictureOp):
    """Rows and columns picked by index, channels from ``channel`` on.

    ``rows[y]`` is the source row of output row y, or -1 where ``fill`` is stored: nearest-neighbour
    Resize, spatial Slice and Pad are all this.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    channel: int = 0
    fill: float = 0.0

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        x, y = only(inputs), outputs[0]
        grid = Grid.over(y.width, y.height, y.blocks, traits)
        lanes = self.channel % y.block != 0 or (
            x.channels % y.block != 0 and x.channels - self.channel < y.channels
        )
        used = y.channels % y.block
        other = not np.isfinite(self.fill) or self.channel + y.channels < x.channels
        args = [*pointer("i0", x), *ints(x.channels, self.channel), Ref("rows"), Ref("columns")]
        args += [np.float32(self.fill), *pointer("y", y), *ints(y.blocks, used), *grid.args]
        kernel = source("gather", traits, y.block, lanes=lanes, closes=used > 0 and other)
        tables = {
            "rows": np.array(self.rows, np.int32),
            "columns": np.array(self.columns, np.int32),
        }
        return Plan((grid.launch(kernel, args),), tables)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        there = max(self.rows) < x[2] and max(self.columns) < x[3]
        return there and len(x) == 4 and (y[0], *y[2:]) == (x[0], len(self.rows), len(self.columns))


@dataclass(frozen=True)
class Linear(PictureOp):
    """Bilinear resize: each output row mixes rows ``low`` and ``high`` by ``weight`` of high."""

    rows: tuple[tuple[int, int, float], ...]
    columns: tuple[tuple[int, int, float], ...]

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        x, y = only(inputs), outputs[0]
        grid = Grid.over(y.width, y.height, y.blocks, traits)
        names = ("rows", "row_weight", "columns", "column_weight")
        args = [*pointer("i0", x), *(Ref(name) for name in names), *pointer("y", y), *grid.args]
        constants = {}
        for table, index, weight in ((self.rows, *names[:2]), (self.columns, *names[2:])):
            constants[index] = np.array([entry[:2] for entry in table], np.int32).reshape(-1)
            constants[weight] = np.array([entry[2] for entry in table], np.float32)
        return Plan((grid.launch(source("linear", traits, y.block), args),), constants)

    def operations(self, inputs: Shapes, y: Shape) -> int:
        return 6 * prod(y)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        there = all(
            max(low, high) < size
            for table, size in ((self.rows, x[2]), (self.columns, x[3]))
            for low, high, _ in table
        )
        return there and y == (*x[:2], len(self.rows), len(self.columns))


@dataclass(frozen=True)
class FillHalo(PictureOp):
    """Pad in front of a convolution, by writing the halo of the tensor in place."""

    fills_halo, ignores_halo = True, False

    mode: Literal["constant", "reflect", "edge"]
    pads: tuple[int, int, int, int]
    fill: float = 0.0

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        """The whole halo of y, whose sizes are at least ``pads``."""
        y = outputs[0]
        stored = replace(y, halo=(0, 0, 0, 0), height=y.stored_height, width=y.stored_width)
        grid = Grid.bands(stored.width, stored.height, y.blocks, traits)
        args = [*pointer("y", y), *ints(*y.halo, y.height, y.width), np.float32(self.fill)]
        kernel = source("halo", traits, y.block, mode=self.mode)
        return Plan((grid.launch(kernel, args + grid.args),))

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        return x == y


ZERO_HALO = FillHalo("constant", (0, 0, 0, 0))


@dataclass(frozen=True)
class Moments(PictureOp):
    """Mean and 1 / sqrt(variance + epsilon) of each channel over the picture: two outputs."""

    vectors = True

    epsilon: float

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        x, (mean, deviation) = only(inputs), outputs
        grid = Grid.bands(x.width, x.height, x.blocks, traits)
        bands = grid.bands_per_block
        kernel = source("moments", traits, x.block)
        kept = [Ref("scratch"), Place(), *ints(bands)]
        partial = grid.launch(kernel, [*pointer("i0", x), *kept, *grid.args])
        args = [*kept, *ints(x.height, x.width, grid.chunk_h)]
        args += [np.float32(self.epsilon), Ref("y"), *ints(mean.origin)]
        args += [Ref("y1"), *ints(deviation.origin, x.blocks)]
        merge = line_launch(replace(kernel, name="merge"), x.blocks, args, traits)
        return Plan((partial, merge), scratch_floats=x.blocks * bands * 2 * x.block)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (mean, deviation) = inputs, outputs
        return len(x) == 4 and mean == deviation == (*x[:2], 1, 1)


@dataclass(frozen=True)
class Lrn(PictureOp):
    """Local response normalisation across ``size`` channels."""

    size: int
    alpha: float
    beta: float
    bias: float

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        x, y = only(inputs), outputs[0]
        grid = Grid.over(y.width, y.height, y.blocks, traits)
        before = (self.size - 1) // 2
        after = self.size - 1 - before
        args = [*pointer("i0", x), *ints(x.channels, before, after)]
        args += [np.float32(value) for value in (self.alpha / self.size, self.beta, self.bias)]
        reach = (before, after) if after <= y.block > 1 else None
        kernel = source("lrn", traits, y.block, reach=reach, beta=0.75 if self.beta == 0.75 else 0)
        return Plan((grid.launch(kernel, [*args, *pointer("y", y), *grid.args]),))

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        return x == y


@dataclass(frozen=True)
class MoveChannels(PictureOp):
    """Copy all channels of a picture to channels of another one, from ``target`` on."""

    source: int
    target: int
    count: int

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        first, target, count = self.source, self.target, self.count
        x, y = only(inputs), outputs[0]
        lanes = y.block
        width = gcd(gcd(first, target), gcd(count, lanes))
        whole = first % lanes == 0 and target % lanes == 0 and target + count == y.channels
        width = lanes if whole else width
        if width not in (1, 4, 8, 16):
            width = 1  # vectors of two gain nothing
        grid = Grid.over(y.width, y.height, -(-count // width), traits)
        used = (target + count) % lanes
        closes = target + count == y.channels and used > 0
        kernel = source("move_channels", traits, width, lanes=lanes, closes=closes)
        args = [*pointer("i0", x), *ints(first), *pointer("y", y), *ints(target)]
        args += [*ints(-(-count // width), used), *grid.args]
        return Plan((grid.launch(kernel, args),))
