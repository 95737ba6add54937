"""A combined block as numbers, for a network that chooses among its endings (TOP, section V-C).

Times are counted in those of the block's mean op, so that numbers are of the same size on every
device. What an ending takes as a stage is among its figures, by the GPU's model (``gpu``), as it is
for dynamic programming; the paper, which has no such model, measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from heimdall.lab.simulator.together.concurrent_stages import (
    GROUPS,
    Block,
    Combined,
    Ending,
    Left,
    Mask,
)
from heimdall.lab.simulator.together.layers import KINDS, POOLINGS, Operator

# Kind, pooling, both shapes, stride, kernel, padding and activation of an op, and what it takes on
# the device: its time, and the share of the GPU that it fills.
SIZE = len(KINDS) + len(POOLINGS) + 14
FIGURES = 5  # of an ending: groups, the longest one's time, the sum of all, what they fill, its own


@dataclass(frozen=True)
class Graph:
    """``features``: (ops, SIZE); ``parents``: (ops, ops), 1 where an op of a row needs that of a
    column. Ops of all blocks, one block after the other."""

    features: np.ndarray
    parents: np.ndarray
    combined: Combined
    mean_ns: float  # of its ops

    def choices(self, left: Left, endings: Sequence[Ending]) -> tuple[np.ndarray, np.ndarray]:
        """Of each ending a row: 1 for the ops that would be leaves of what it leaves, (endings,
        ops), and its figures, (endings, FIGURES)."""
        leaves = []
        for number, (block, mask) in enumerate(zip(self.combined.blocks, left, strict=True)):
            after = [mask & ~ending.parts[number].mask for ending in endings]
            rows = {each: row for row, each in enumerate(dict.fromkeys(after))}
            table = np.asarray([_leaves(block, each) for each in rows], np.float32)
            leaves.append(table[[rows[each] for each in after]])
        figures = [
            (each.groups / GROUPS, each.longest_ns / self.mean_ns, each.alone_ns / self.mean_ns,
             each.filled_ns / self.mean_ns, each.ns / self.mean_ns)
            for each in endings
        ]  # fmt: skip
        return np.concatenate(leaves, 1), np.asarray(figures, np.float32)


def graph_of(combined: Combined) -> Graph:
    """A combined block as a graph."""
    rows, count = list[list[float]](), sum(len(block.ops) for block in combined.blocks)
    parents, first = np.zeros((count, count), np.float32), 0
    mean_ns = combined.alone_ns / count
    for block in combined.blocks:
        for op, (kind, ns, filled_ns) in enumerate(
            zip(block.ops, block.ns, block.filled_ns, strict=True)
        ):
            rows.append([*_row(kind), ns / mean_ns, filled_ns / ns])
            for need in block.needs[op]:
                parents[first + op, first + need] = 1.0
        first += len(block.ops)
    return Graph(np.asarray(rows, np.float32), parents, combined, mean_ns)


def _leaves(block: Block, left: Mask) -> list[float]:
    """1 for the ops that nothing of what is left of a block needs."""
    ops = [op for op in range(len(block.ops)) if left >> op & 1]
    needed = {need for op in ops for need in block.needs[op]}
    return [float(left >> op & 1 and op not in needed) for op in range(len(block.ops))]


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
