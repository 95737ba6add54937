"""Early exits: the ways through one network, and what is left of each from any op on.

A variant of a network is the op ranges that run (Pantheon, section 3.1): the backbone up to an exit
and that exit's head. All sums are over suffixes, so that what is left is one look-up.
"""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.vocabulary.plans import Exit


class Variant:
    """One variant of a network of ``ops`` ops. ``next_op[i]``: the first of its ops from op i on,
    ``ops`` where none is left."""

    __slots__ = ("chunks_left", "exit", "fallback_left", "gpu_left", "next_op")

    def __init__(self, exit: Exit, ops: int) -> None:
        self.exit = exit
        self.next_op = [ops] * (ops + 1)
        for start, end in exit.ranges:
            self.next_op[start:end] = range(start, end)
        for op in range(ops - 1, -1, -1):
            if self.next_op[op] == ops:
                self.next_op[op] = self.next_op[op + 1]
        self.gpu_left: list[int] = []  # ns, with a wait for each run of GPU ops
        self.fallback_left: list[int] = []  # ns
        self.chunks_left: list[int] = []

    def measure(
        self, op_ns: Sequence[int], fallback: Sequence[bool], run_end: Sequence[int], wait_ns: int
    ) -> None:
        """Sum up what is left of the ops of either kind. A run costs ``wait_ns`` beside its ops."""
        waits = [
            wait_ns if end == op + 1 and not off else 0
            for op, (end, off) in enumerate(zip(run_end, fallback, strict=True))
        ]
        self.gpu_left = self.left(
            [
                wait + (0 if off else ns)
                for wait, ns, off in zip(waits, op_ns, fallback, strict=True)
            ]
        )
        self.fallback_left = self.left(
            [ns if off else 0 for ns, off in zip(op_ns, fallback, strict=True)]
        )

    def recut(self, chunk_end: Sequence[int], fallback: Sequence[bool]) -> None:
        """Count the chunks left that have work for the GPU."""
        counted = [0] * len(chunk_end)
        start = 0
        for op, end in enumerate(chunk_end):
            if end == op + 1:
                counted[op] = int(not all(fallback[start:end]))
                start = end
        self.chunks_left = self.left(counted)

    def left(self, values: Sequence[int]) -> list[int]:
        """For each op: the sum over this variant's ops from it on."""
        sums = [0] * (len(values) + 1)
        for op in range(len(values) - 1, -1, -1):
            sums[op] = sums[op + 1] + (values[op] if self.next_op[op] == op else 0)
        return sums


def variants(exits: Sequence[Exit], ops: int) -> dict[str, Variant]:
    """Every variant by its name, the least accurate first and the whole network last."""
    return {each.name: Variant(each, ops) for each in exits}


def borders(exits: Sequence[Exit]) -> frozenset[int]:
    """Where heads begin and end: no chunk crosses one."""
    return frozenset(op for each in exits for span in each.ranges for op in span)


def why_wrong(exits: Sequence[Exit], ops: int) -> str:
    """What is wrong with the exits of a network of ``ops`` ops; "" if nothing is."""
    names = [each.name for each in exits]
    if "" in names or len(set(names)) < len(names):
        return f"its exits need a name each, all different: {names}"
    for each in exits:
        bounds = [op for span in each.ranges for op in span]
        rising = all(a < b for a, b in each.ranges) and bounds == sorted(bounds)
        if not bounds or not rising or bounds[0] != 0 or bounds[-1] > ops:
            return (
                f"exit {each.name!r} runs the ops {list(each.ranges)}, but ranges have to begin "
                f"with op 0, to rise, and to end at op {ops} at most"
            )
        if not 0 <= each.accuracy <= 1:
            return f"exit {each.name!r} has an accuracy of {each.accuracy}, not one between 0 and 1"
    if exits and exits[-1].ranges[-1][1] != ops:
        return f"its last exit, {names[-1]!r}, does not end with op {ops}: it has to be all of it"
    return ""
