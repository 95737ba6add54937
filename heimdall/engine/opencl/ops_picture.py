"""Plans of operators over pictures in channel blocks. Refs: "i0" is the input, "y" (and "y1")
the outputs, "scratch" a temporary."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

import numpy as np

from heimdall.engine.opencl.grid import Grid, ints, line_launch, pointer, source
from heimdall.engine.opencl.launch import Plan, Ref, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.lowered import FillHalo, Gather, Linear, Lrn, Moments, Pool, Reduce

JOINS = {
    "sum": ("a + b", "0.0f"),
    "mean": ("a + b", "0.0f"),
    "max": ("b > a ? b : a", "-INFINITY"),
    "min": ("b < a ? b : a", "INFINITY"),
    "prod": ("a * b", "1.0f"),
}


def plan_pool(spec: Pool, x: Layout, y: Layout, traits: Traits) -> Plan:
    grid = Grid.over(y.width, y.height, y.blocks, traits)
    args = [*pointer("i0", x), *ints(x.height, x.width), *pointer("y", y)]
    args += ints(*spec.kernel, *spec.strides, *spec.dilations, *spec.pads)
    counted = spec.mode == "average" and spec.count_pads
    unrolled = max(spec.kernel) <= 3 and spec.dilations == (1, 1)
    taps_h, taps_w = spec.kernel if unrolled else (0, 0)
    window = {"counted": counted, "taps_h": taps_h, "taps_w": taps_w}
    kernel = source("pool", traits, y.block, mode=spec.mode, **window)
    return Plan((grid.launch(kernel, args + grid.args),))


def plan_gather(spec: Gather, x: Layout, y: Layout, traits: Traits) -> Plan:
    grid = Grid.over(y.width, y.height, y.blocks, traits)
    lanes = spec.channel % y.block != 0 or (
        x.channels % y.block != 0 and x.channels - spec.channel < y.channels
    )
    args = [*pointer("i0", x), *ints(x.channels, spec.channel), Ref("rows"), Ref("columns")]
    args += [np.float32(spec.fill), *pointer("y", y), *grid.args]
    kernel = source("gather", traits, y.block, lanes=lanes)
    tables = {
        "rows": np.array(spec.rows, np.int32),
        "columns": np.array(spec.columns, np.int32),
    }
    return Plan((grid.launch(kernel, args),), tables)


def plan_linear(spec: Linear, x: Layout, y: Layout, traits: Traits) -> Plan:
    grid = Grid.over(y.width, y.height, y.blocks, traits)
    names = ("rows", "row_weight", "columns", "column_weight")
    args = [*pointer("i0", x), *(Ref(name) for name in names), *pointer("y", y), *grid.args]
    constants = {}
    for table, index, weight in ((spec.rows, *names[:2]), (spec.columns, *names[2:])):
        constants[index] = np.array([entry[:2] for entry in table], np.int32).reshape(-1)
        constants[weight] = np.array([entry[2] for entry in table], np.float32)
    return Plan((grid.launch(source("linear", traits, y.block), args),), constants)


def plan_halo(spec: FillHalo, y: Layout, traits: Traits) -> Plan:
    """Writes the whole halo of y, whose sizes are at least ``spec.pads``."""
    stored = replace(y, halo=(0, 0, 0, 0), height=y.stored_height, width=y.stored_width)
    grid = Grid.bands(stored.width, stored.height, y.blocks, traits)
    args = [*pointer("y", y), *ints(*y.halo, y.height, y.width), np.float32(spec.fill)]
    kernel = source("halo", traits, y.block, mode=spec.mode)
    return Plan((grid.launch(kernel, args + grid.args),))


def plan_moments(spec: Moments, x: Layout, mean: Layout, deviation: Layout, traits: Traits) -> Plan:
    grid = Grid.bands(x.width, x.height, x.blocks, traits)
    bands = grid.bands_per_block
    kernel = source("moments", traits, x.block)
    partial = grid.launch(kernel, [*pointer("i0", x), Ref("scratch"), *ints(bands), *grid.args])
    args = [Ref("scratch"), *ints(bands, x.height, x.width, grid.chunk_h)]
    args += [np.float32(spec.epsilon), Ref("y"), *ints(mean.origin)]
    args += [Ref("y1"), *ints(deviation.origin, x.blocks)]
    merge = line_launch(replace(kernel, name="merge"), x.blocks, args, traits)
    return Plan((partial, merge), scratch_floats=x.blocks * bands * 2 * x.block)


def plan_reduce_picture(spec: Reduce, x: Layout, y: Layout, traits: Traits) -> Plan:
    """Over rows and columns: one value a channel."""
    grid = Grid.bands(x.width, x.height, x.blocks, traits)
    bands = grid.bands_per_block
    join, start = JOINS[spec.mode]
    kernel = source("reduce_picture", traits, x.block, join=join, start=start, whole=bands == 1)
    factor = np.float32(1.0 / (x.height * x.width) if spec.mode == "mean" else 1.0)
    first = [*pointer("i0", x)]
    if bands == 1:
        args = [*first, Ref("y"), *ints(y.origin, 1), factor, *grid.args]
        return Plan((grid.launch(kernel, args),))
    args = [*first, Ref("scratch"), *ints(0, bands), np.float32(1.0), *grid.args]
    partial = grid.launch(kernel, args)
    rest = [Ref("scratch"), *ints(bands), factor, Ref("y"), *ints(y.origin, x.blocks)]
    merge = line_launch(replace(kernel, name="merge"), x.blocks, rest, traits)
    return Plan((partial, merge), scratch_floats=x.blocks * bands * x.block)


def plan_lrn(spec: Lrn, x: Layout, y: Layout, traits: Traits) -> Plan:
    grid = Grid.over(y.width, y.height, y.blocks, traits)
    before = (spec.size - 1) // 2
    after = spec.size - 1 - before
    args = [*pointer("i0", x), *ints(x.channels, before, after)]
    args += [np.float32(value) for value in (spec.alpha / spec.size, spec.beta, spec.bias)]
    reach = (before, after) if after <= y.block > 1 else None
    kernel = source("lrn", traits, y.block, reach=reach, beta=0.75 if spec.beta == 0.75 else 0)
    return Plan((grid.launch(kernel, [*args, *pointer("y", y), *grid.args]),))


def plan_move(first: int, target: int, count: int, x: Layout, y: Layout, traits: Traits) -> Plan:
    """Channels ``first`` .. of x to channels ``target`` .. of y."""
    lanes = y.block
    width = gcd(gcd(first, target), gcd(count, lanes))
    whole = first % lanes == 0 and target % lanes == 0 and target + count == y.channels
    width = lanes if whole else width  # the lanes behind the last channel may hold anything
    if width not in (1, 4, 8, 16):
        width = 1  # vectors of two gain nothing
    grid = Grid.over(y.width, y.height, -(-count // width), traits)
    kernel = source("move_channels", traits, width, lanes=lanes)
    args = [*pointer("i0", x), *ints(first), *pointer("y", y), *ints(target), *grid.args]
    return Plan((grid.launch(kernel, args),))
