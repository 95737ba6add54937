"""A row times a matrix whose weights have a few bits: what a step of a language model spends its
time with, reading weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input, operands
from heimdall.engine.opencl.grid import ints, line_launch, source
from heimdall.engine.opencl.kernel_op import Shapes
from heimdall.engine.opencl.launch import Plan, Ref, Traits
from heimdall.engine.opencl.strided import Strided
from heimdall.graph.packed_weights import Blocks

_LANES = (16, 8, 4, 2, 1)
_WIDE = 4  # vectors of a work-item: what is done with x is done once for all of them


@dataclass(frozen=True, eq=False)
class PackedProduct(ArrayOp):
    """(.., 1, depth) by the columns of ``weights``."""

    weights: Blocks

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        ((x,), constants), weights = operands(inputs, traits), self.weights
        columns, blocks, size = weights.shape
        lanes, wide = _shares(columns, traits)
        tile = columns if traits.kind == "gpu" else lanes * wide
        middle = weights.same_middle
        constants["w"] = _tiled(weights.words, tile)
        constants["scales"] = _tiled(weights.scales, tile)
        constants["middles"] = _tiled(weights.middles, tile) if middle < 0 else np.zeros(1)
        kernel = source(
            "packed_product", traits, lanes, wide=wide, bits=weights.bits, size=size, middle=middle
        )
        args = [*x, Ref("w"), Ref("scales"), Ref("middles"), Ref("y")]
        args += ints(y.offset, blocks, columns, tile)
        return Plan((line_launch(kernel, columns // (lanes * wide), args, traits),), constants)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        columns, blocks, size = self.weights.shape
        (x,) = inputs
        return math.prod(x) == x[-1] == blocks * size and list(outputs) == [(*x[:-1], columns)]

    def operations(self, inputs: Shapes, y: tuple[int, ...]) -> int:
        return 2 * math.prod(self.weights.shape)

    @property
    def weight_count(self) -> int:
        return math.prod(self.weights.shape)


def _shares(columns: int, traits: Traits) -> tuple[int, int]:
    """Lanes, and vectors of them, that a work-item does: so many that every core has two."""
    if traits.kind == "gpu":
        return 1, 1
    lanes = next(each for each in _LANES if each <= traits.block and columns % each == 0)
    vectors = columns // lanes
    most = min(_WIDE, max(1, vectors // (2 * traits.compute_units)))
    return lanes, next(each for each in range(most, 0, -1) if vectors % each == 0)


def _tiled(numbers: np.ndarray, tile: int) -> np.ndarray:
    """(columns, n) as (tiles, n, tile), flat."""
    columns, count = numbers.shape
    tiles = numbers.reshape(columns // tile, tile, count).transpose(0, 2, 1)
    return np.ascontiguousarray(tiles).reshape(-1)
