"""How long operators take on a GPU, alone and at the same time.

Nobody publishes such times, so they follow from what a GPU can do. Alone an operator takes as long
as its arithmetic or its memory traffic, whichever is longer, and its launch. It fills the share of
the GPU that its work-groups fill of those that are resident at once (occupancy). Groups of
operators that run at the same time take as long as the longest of them, or as the GPU is full:
the sum of occupancy x time; and each hinders the others a little (contention).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from heimdall.simulator.together.layers import Network, Operator

TILE = 2048  # outputs that a work-group computes: 256 threads with 8 each

Group = Sequence[int]  # numbers of ops, which run one after the other


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
        """With nobody else on the GPU."""
        seconds = max(op.flops / self.flops_per_s, op.moved_bytes / self.bytes_per_s)
        return seconds * 1e9 + self.launch_ns

    def occupancy(self, op: Operator) -> float:
        """The share of the GPU that it fills, above 0 to 1."""
        return min(1.0, -(-prod(op.output) // TILE) / self.work_groups)


class OpTimes:
    """The ops of a network on a GPU. ``ns``: of each op alone; ``filled_ns``: occupancy x that."""

    def __init__(self, gpu: ConcurrentGpu, network: Network) -> None:
        self.contention = gpu.contention
        self.ns = [gpu.alone_ns(op) for op in network.ops]
        pairs = zip(network.ops, self.ns, strict=True)
        self.filled_ns = [gpu.occupancy(op) * ns for op, ns in pairs]


@dataclass(frozen=True, slots=True)
class Took:
    """``ns``, and of it the share of the GPU that was filled, in ns of a full one."""

    ns: float
    filled_ns: float


def stage_took(groups: Iterable[tuple[OpTimes, Group]], contention: float) -> Took:
    """A stage of groups that run at the same time."""
    longest_ns = filled_ns = 0.0
    count = 0
    for times, ops in groups:
        longest_ns = max(longest_ns, sum(times.ns[op] for op in ops))
        filled_ns += sum(times.filled_ns[op] for op in ops)
        count += 1
    ns = max(longest_ns, filled_ns) * (1 + contention * (count - 1))
    return Took(ns, filled_ns)
