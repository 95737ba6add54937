"""How long operators take on a GPU, alone and at the same time.

Such times are not published, so they follow from what a GPU can do. Alone an operator takes as long
as its arithmetic or its memory traffic, whichever is longer, and its launch. It fills the share of
the GPU that its work-groups fill of those that are resident at once (occupancy). Groups of
operators that run at the same time take as long as the longest of them, or as the GPU is full:
the sum of occupancy x time; and each hinders the others a little (contention).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from heimdall.lab.simulator.together.layers import LayeredNetwork, Operator

TILE = 2048  # outputs that a work-group computes: 256 threads with 8 each


@dataclass(frozen=True, slots=True)
class ConcurrentGpu:
    """``work_groups``: how many are resident at once; ``contention``: how much longer a stage takes
    for each group but one."""

    flops_per_s: float
    bytes_per_s: float
    launch_ns: float
    work_groups: int
    contention: float

    def alone_ns(self, op: Operator) -> float:
        """With nothing else on the GPU."""
        seconds = max(op.flops / self.flops_per_s, op.moved_bytes / self.bytes_per_s)
        return seconds * 1e9 + self.launch_ns

    def occupancy(self, op: Operator) -> float:
        """The share of the GPU that it fills, above 0 to 1."""
        return min(1.0, -(-prod(op.output) // TILE) / self.work_groups)


@dataclass(frozen=True, slots=True)
class Took:
    """``ns``, and of it the share of the GPU that was filled, in ns of a full one."""

    ns: float
    filled_ns: float


class OpTimes:
    """The ops of a network on a GPU. ``ns``: of each op alone; ``filled_ns``: occupancy x that."""

    def __init__(self, gpu: ConcurrentGpu, network: LayeredNetwork) -> None:
        self.contention = gpu.contention
        self._of: dict[tuple[tuple[int, int], ...], Took] = {}
        self.ns = [gpu.alone_ns(op) for op in network.ops]
        pairs = zip(network.ops, self.ns, strict=True)
        self.filled_ns = [gpu.occupancy(op) * ns for op, ns in pairs]

    def group(self, ranges: tuple[tuple[int, int], ...]) -> Took:
        """A group of ops, which run one after the other."""
        if ranges not in self._of:
            ops = [op for start, end in ranges for op in range(start, end)]
            filled_ns = sum(self.filled_ns[op] for op in ops)
            self._of[ranges] = Took(sum(self.ns[op] for op in ops), filled_ns)
        return self._of[ranges]


def stage_took(groups: Sequence[Took], contention: float) -> Took:
    """A stage of groups that run at the same time."""
    filled_ns = sum(group.filled_ns for group in groups)
    ns = max(max(group.ns for group in groups), filled_ns)
    return Took(ns * (1 + contention * (len(groups) - 1)), filled_ns)
