"""Units (Band, MobiSys '22, section 4.2): where a network may be handed from one processor to
another.

A unit is a longest run of neighbouring ops that exactly the same processors support; a subgraph,
one or several neighbouring units with a processor in common. Every merge stays open until the
moment of a decision (by Band's policies), so the partition needs to hold units only.

Units are ranges of the network's own order of ops. Band's code also gathers ops that are ready at
the same time but not neighbours; with branches that gives it fewer units.
"""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.vocabulary.ranges import runs

# A run of ops on an accelerator that is shorter is not worth handing over: in Band's code, not in
# its paper.
LEAST_OPS = 7

OnProcessors = Sequence[tuple[str, Sequence[int | None]]]  # StagePlan.on


def units(on: OnProcessors, least_ops: int = LEAST_OPS) -> list[tuple[int, int]]:
    """The half-open op ranges of all units of a network, in order.

    ``on``: by processor, each op's latency there, None where it is not supported. A run of fewer
    than ``least_ops`` ops that are supported counts as not supported there, unless it is the whole
    network or nothing else supports one of its ops.
    """
    return [(start, end) for start, end, _ in runs(_support(on, least_ops))]


def _support(on: OnProcessors, least_ops: int) -> list[frozenset[str]]:
    """For each op, the processors that it is worth running on."""
    ops = len(on[0][1])
    everyone = [{name for name, op_ns in on if op_ns[op] is not None} for op in range(ops)]
    kept = [set(names) for names in everyone]
    for name, op_ns in on:
        for start, end, supported in runs([ns is not None for ns in op_ns]):
            alone = any(everyone[op] == {name} for op in range(start, end))
            if supported and end - start < min(least_ops, ops) and not alone:
                for op in range(start, end):
                    kept[op].discard(name)
    # Several may have been struck out where only short runs overlap: then all of them stay.
    return [frozenset(left or names) for left, names in zip(kept, everyone, strict=True)]
