"""Rows times a matrix whose weights have a few bits. With one, a step of a language model, the time
goes into reading weights; with many, a piece of a prompt, into computing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input, operands
from heimdall.engine.opencl.grid import ints, line_launch, most, source
from heimdall.engine.opencl.kernel_op import Shapes
from heimdall.engine.opencl.launch import Plan, Ref, Traits
from heimdall.engine.opencl.strided import Strided
from heimdall.graph.packed_weights import Blocks

ROWS = 16  # of a work-item: a number becomes a float once for all of them
_LANES = (16, 8, 4, 2, 1)
_WIDE = 4  # vectors of a work-item with one row: what is done with x is done once for all of them


@dataclass(frozen=True, eq=False)
class PackedProduct(ArrayOp):
    """Rows (groups, depth, rows of a group), so that those of a group lie side by side, by the
    columns of ``weights``, which stay as they are stored: (all rows, columns)."""

    weights: Blocks

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        ((x,), constants), (groups, _, taken) = operands(inputs, traits), inputs[0].shape
        columns, blocks, size = self.weights.shape
        lanes, wide = _shares(columns, _WIDE if taken == 1 else 1, traits)
        tile = columns if traits.kind == "gpu" else lanes * wide
        middle = self.weights.same_middle
        constants["w"] = _tiled(self.weights.words, tile)
        constants["scales"] = _tiled(self.weights.scales, tile)
        constants["middles"] = _tiled(self.weights.middles, tile) if middle < 0 else np.zeros(1)
        given = {"wide": wide, "bits": self.weights.bits, "size": size, "middle": middle}
        args = [*x, Ref("w"), Ref("scales"), Ref("middles"), Ref("y")]
        args += ints(y.offset, blocks, columns, tile)
        if groups * taken == 1:
            kernel = source("packed_product", traits, lanes, **given)
        else:
            kernel = source("packed_rows", traits, lanes, taken=taken, **given)
            args += ints(groups)
        items = columns // (lanes * wide) * groups
        return Plan((line_launch(kernel, items, args, traits),), constants)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        columns, blocks, size = self.weights.shape
        (x,) = inputs
        fits = len(x) == 3 and x[1] == blocks * size
        return fits and list(outputs) == [(x[0] * x[2], columns)]

    def operations(self, inputs: Shapes, y: tuple[int, ...]) -> int:
        return 2 * math.prod(y) * inputs[0][1]

    @property
    def weight_count(self) -> int:
        return math.prod(self.weights.shape)


def _shares(columns: int, wide: int, traits: Traits) -> tuple[int, int]:
    """Lanes, and vectors of them, that a work-item does: so many that every core has two."""
    if traits.kind == "gpu":
        return 1, 1
    lanes = next(each for each in _LANES if each <= traits.block and columns % each == 0)
    vectors = columns // lanes
    return lanes, most(vectors, min(wide, max(1, vectors // (2 * traits.compute_units))))


def _tiled(numbers: np.ndarray, tile: int) -> np.ndarray:
    """(columns, n) as (tiles, n, tile), flat."""
    columns, count = numbers.shape
    tiles = numbers.reshape(columns // tile, tile, count).transpose(0, 2, 1)
    return np.ascontiguousarray(tiles).reshape(-1)
