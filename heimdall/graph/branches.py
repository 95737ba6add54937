"""Which ops of a network may run at the same time, by what each waits for.

``needs[i]`` are ops before op i that must have run: the edges of the computation graph (TOP,
section III-B). Ops are numbered in an order in which they can run one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from heimdall.graph.graph import Graph
from heimdall.vocabulary.ranges import as_ranges

Needs = Sequence[Collection[int]]
Range = tuple[int, int]  # half-open
Stages = tuple[tuple[tuple[Range, ...], ...], ...]  # stages of groups of ranges of ops


def node_needs(graph: Graph) -> list[frozenset[int]]:
    """For each node the nodes whose outputs it reads."""
    made = {name: index for index, node in enumerate(graph.nodes) for name in node.outputs if name}
    return [frozenset(made[name] for name in node.inputs if name in made) for node in graph.nodes]


def ancestors(needs: Needs) -> list[int]:
    """For each op all ops that must have run before it, as bits of a number."""
    found: list[int] = []
    for own in needs:
        found.append(0)
        for op in own:
            found[-1] |= found[op] | 1 << op
    return found


def direct(needs: Needs) -> list[frozenset[int]]:
    """This order by as few edges as may be: without what another need of an op needs."""
    before = ancestors(needs)
    return [
        frozenset(op for op in own if not any(before[other] >> op & 1 for other in own))
        for own in needs
    ]


def independent_branches(needs: Needs) -> Stages:
    """All ops as stages (one after the other) of groups (at the same time; TOP, section IV).

    Between a fork and its join, as in an Inception block or a fire module, each branch is a group;
    what lies between two joins is one group. Branches that read or feed each other are one, too.
    """
    before = ancestors(needs)
    stages: list[tuple[tuple[Range, ...], ...]] = []
    for start, end in _in_series(before):
        groups = tuple(as_ranges(group) for group in _parallel(needs, start, end))
        if len(groups) == 1 and stages and len(stages[-1]) == 1:
            stages[-1] = (((stages[-1][0][0][0], end),),)  # a chain goes on: nothing to wait for
        else:
            stages.append(groups)
    return tuple(stages)


def _in_series(before: Sequence[int]) -> Iterator[Range]:
    """The finest ranges such that all ops of one are needed by each op of the next."""
    count, start = len(before), 0
    common, cuts = (1 << count) - 1, [count]  # what every op from here on needs
    for op in reversed(range(count)):
        common &= before[op]
        if common & ((1 << op) - 1) == (1 << op) - 1:
            cuts.append(op)
    for end in reversed(cuts):
        if end > start:
            yield start, end
            start = end


def _parallel(needs: Needs, start: int, end: int) -> list[list[int]]:
    """The ops of a range, those together that are connected within it."""
    group = {op: [op] for op in range(start, end)}
    for op in range(start, end):
        for other in needs[op]:
            if other >= start and group[other] is not group[op]:
                joined = group[other] + group[op]
                group |= dict.fromkeys(joined, joined)
    found = {id(each): each for each in group.values()}
    return sorted(map(sorted, found.values()))
