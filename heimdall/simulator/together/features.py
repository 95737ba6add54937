"""A combined block as numbers, for a network that chooses among its endings (TOP, section V-C)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np

from heimdall.simulator.together.layers import KINDS, POOLINGS, Operator
from heimdall.simulator.together.stages import Combined, Left

# Kind, pooling, both shapes, stride, kernel, padding and activation of an op, and what it takes on
# the device: its time, and the share of the GPU that it fills.
SIZE = len(KINDS) + len(POOLINGS) + 14


@dataclass(frozen=True)
class Graph:
    """``features``: (ops, SIZE); ``parents``: (ops, ops), 1 where an op of a row needs that of a
    column. Ops of all blocks, one block after the other."""

    features: np.ndarray
    parents: np.ndarray
    combined: Combined

    def leaves(self, left: Left) -> np.ndarray:
        """(1, ops): 1 for the ops that nothing of what is left needs."""
        found: list[float] = []
        for block, mask in zip(self.combined.blocks, left, strict=True):
            needed = {
                need for op, needs in enumerate(block.needs) if mask >> op & 1 for need in needs
            }
            found += [float(mask >> op & 1 and op not in needed) for op in range(len(block.ops))]
        return np.asarray([found], np.float32)


def graph_of(combined: Combined) -> Graph:
    """A combined block as a graph."""
    rows, count = list[list[float]](), sum(len(block.ops) for block in combined.blocks)
    parents, first = np.zeros((count, count), np.float32), 0
    for block in combined.blocks:
        for op, (kind, ns, filled_ns) in enumerate(
            zip(block.ops, block.ns, block.filled_ns, strict=True)
        ):
            rows.append([*_row(kind), ns / 1e5, filled_ns / ns])
            for need in block.needs[op]:
                parents[first + op, first + need] = 1.0
        first += len(block.ops)
    return Graph(np.asarray(rows, np.float32), parents, combined)


def _row(op: Operator) -> list[float]:
    shapes = [log2(1 + size) / 11 for size in (*op.inputs[0], *op.output)]
    return [
        *(float(op.kind == kind) for kind in KINDS),
        *(float(op.pooling == pooling) for pooling in POOLINGS),
        *shapes,
        op.stride / 2,
        *(log2(size) / 3 for size in op.kernel),
        *(size / 3 for size in op.pad),
        float(op.relu),
    ]
