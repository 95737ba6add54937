"""What a language model does with the keys and values of the tokens before: rows of a cache that
stays in place.

``last`` is the index of the newest row in the cache, one number that is computed, or given, as the
network runs. Kernels keep it within the cache, whatever it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import IndexedOp, Input, operands
from heimdall.engine.opencl.conv_build import local_size
from heimdall.engine.opencl.grid import ints, line_launch, most, source
from heimdall.engine.opencl.kernel_op import Shapes
from heimdall.engine.opencl.launch import Arg, Kernel, Launch, Place, Plan, Ref, Traits
from heimdall.engine.opencl.strided import Strided

_KEYS = 32  # whose scores a work-item computes
_ACCUMULATORS = 16  # vectors that a work-item sums up in


@dataclass(frozen=True)
class Append(IndexedOp):
    """Put rows (rows, heads, size) into a cache (1, heads, context, size), of which the last one
    is ``last``: where nobody else reads the cache, that is done in place (``placement``)."""

    index = 2

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        self.check_exact(y.shape[2], traits)
        (_, made, last), constants = operands(inputs, traits)
        rows, heads, size = inputs[1].shape
        args = [*made, *last, Ref("y"), *ints(y.offset, heads, y.shape[2], size, rows)]
        kernel = source("append", traits, 1, **self.of_indices)
        return Plan((line_launch(kernel, rows * heads, args, traits),), constants)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        cache, (rows, heads, size), last = inputs
        (_, *wanted) = cache
        room = len(cache) == 4 and wanted == [heads, cache[2], size] and rows <= cache[2]
        return room and cache[0] == math.prod(last) == 1 and list(outputs) == [cache]

    def operations(self, inputs: Shapes, y: tuple[int, ...]) -> int:
        return math.prod(inputs[1])


@dataclass(frozen=True)
class Turn(IndexedOp):
    """Rotary embedding (Su et al. 2021) of (rows, heads, size) by tables of cosines and sines
    (positions, half of what turns), the last row being ``last``. ``apart``: pairs are neighbours,
    not halves. Inputs: x, cosines, sines, last."""

    index = 3
    apart: bool

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        (x, cosines, sines, last), constants = operands(inputs, traits)
        rows, heads, size = y.shape
        positions, half = inputs[1].shape
        args = [*x, *cosines, *sines, *last, Ref("y")]
        args += ints(y.offset, rows, heads, size, half, positions)
        kernel = source("turn", traits, 1, apart=self.apart, **self.of_indices)
        return Plan((line_launch(kernel, rows * heads, args, traits),), constants)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        x, cosines, sines, last = inputs
        tables = len(cosines) == 2 and cosines == sines and 2 * cosines[1] <= x[-1]
        return tables and len(x) == 3 and math.prod(last) == 1 and list(outputs) == [x]


@dataclass(frozen=True)
class AttendCached(IndexedOp):
    """Causal attention of some rows over a cache: softmax(q k * scale) v, where the i-th of n rows
    sees the cache's rows up to last - n + 1 + i. Heads of queries share heads of keys in groups.

    Inputs: q (rows, heads, size), keys and values (1, heads of keys, context, size), last. Rows of
    the cache behind ``last`` are not looked at, so a step costs what is in it.
    """

    index = 3
    scale: float

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        (q, keys, values, last), constants = operands(inputs, traits)
        rows, heads, size = y.shape
        _, kv_heads, context, _ = inputs[1].shape
        block, group = _block(size, traits), heads // kv_heads
        room = -(-context // _KEYS) * _KEYS
        scores: list[Arg] = [Ref("scratch"), Place()]
        shape = ints(rows, kv_heads, context, room, size)
        shared = {"group": group, "keys": _KEYS, **self.of_indices}

        first = source("cached_scores", traits, block, vectors=size // block, **shared)
        blocks = room // _KEYS
        args = [*q, *keys, *last, *scores, *shape, np.float32(self.scale)]
        launches = [_grid(first, (blocks, kv_heads, 1), args, traits)]

        lanes = traits.block if traits.kind == "cpu" else 1
        second = source("cached_softmax", traits, lanes, **self.of_indices)
        args = [*last, *scores, *ints(rows, context, room, rows * heads)]
        launches.append(line_launch(second, rows * heads, args, traits))

        wide = most(size // block, 4 if traits.kind == "cpu" else 1)
        taken = most(rows, max(1, _ACCUMULATORS // (wide * group)))
        third = source("cached_values", traits, block, wide=wide, taken=taken, **shared)
        tiles = (size // (block * wide), kv_heads, rows // taken)
        args = [*values, *last, *scores, Ref("y"), *ints(y.offset), *shape]
        launches.append(_grid(third, tiles, args, traits))
        return Plan(tuple(launches), constants, rows * heads * room)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        q, keys, values, last = inputs
        cache = len(keys) == 4 and keys == values and keys[0] == math.prod(last) == 1
        heads = len(q) == 3 and cache and q[1] % keys[1] == 0 and q[2] == keys[3]
        return heads and q[0] <= keys[2] and list(outputs) == [q]

    def operations(self, inputs: Shapes, y: tuple[int, ...]) -> int:
        return 4 * math.prod(y) * inputs[1][2]


def _block(size: int, traits: Traits) -> int:
    """Lanes that divide the size of a head."""
    return next(lanes for lanes in (16, 8, 4, 2, 1) if lanes <= traits.block and size % lanes == 0)


def _grid(kernel: Kernel, tiles: tuple[int, int, int], args: list[Arg], traits: Traits) -> Launch:
    local = local_size(tiles, traits)
    items = tuple(-(-count // side) * side for count, side in zip(tiles, local, strict=True))
    return Launch(kernel, items, local, tuple(args))


@dataclass(frozen=True)
class Lookup(IndexedOp):
    """Lines of a table (count, ...) by computed indices, of which negative ones count from the
    end; one outside takes the nearest line. Inputs: table, indices."""

    index = 1

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        (table, places), constants = operands(inputs, traits)
        count, *line = inputs[0].shape
        self.check_exact(count, traits)
        size, lines = math.prod(line), math.prod(inputs[1].shape)
        args = [*table, *places, Ref("y"), *ints(y.offset, count, size, lines)]
        kernel = source("lookup", traits, 1, **self.of_indices)
        return Plan((line_launch(kernel, lines, args, traits),), constants)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        table, places = inputs
        return list(outputs) == [(*places, *table[1:])]

    def operations(self, inputs: Shapes, y: tuple[int, ...]) -> int:
        return math.prod(y)
