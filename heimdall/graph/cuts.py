"""Where a graph can be taken apart, and the nodes between two such places.

A *cut* is a set of tensors: with these and the graph's inputs, all that is left can be computed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from heimdall.graph.graph import Graph, Node

_VIEWS = frozenset({"Concat", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def alive(graph: Graph, index: int) -> tuple[str, ...]:
    """The cut before node ``index``: what later nodes, or the caller, read of what earlier ones
    have made."""
    read = {name for node in graph.nodes[index:] for name in node.inputs}
    read |= {tensor.name for tensor in graph.outputs}
    made = (name for node in graph.nodes[:index] for name in node.outputs if name)
    return tuple(name for name in made if name in read)


def between(
    graph: Graph, given: Collection[str], wanted: Collection[str]
) -> tuple[list[Node], list[str]]:
    """The nodes that make the tensors ``wanted`` of those ``given`` and the graph's inputs, in the
    graph's order, and which of these tensors they read."""
    there = {*given, *(tensor.name for tensor in graph.inputs)}
    needed, read = set(wanted) - there, set[str]()
    nodes = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        nodes.append(node)
        used = {name for name in node.inputs if name and name not in graph.constants}
        read |= used & there
        needed |= used - there
    return nodes[::-1], sorted(read)


class Held(NamedTuple):
    """What a job that stops at a cut keeps: how many tensors, and their bytes."""

    tensors: int
    bytes: int


def held(graph: Graph, ops: Sequence[Collection[str]]) -> list[Held]:
    """What is alive before each op, of which each runs the nodes of these names. A node that
    several ops run is done when the last of them is; in between it holds one more, of unknown
    size. One that no op runs, or that only puts tensors side by side, is another view of what it
    reads: it is there as soon as that is. The output of an early exit ends its job: it is not
    held."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for op, names in enumerate(ops):
        for name in names:
            first.setdefault(name, op)
            last[name] = op
    ran = frozenset(last)
    for node in graph.nodes:
        if node.name not in ran or node.op_type in _VIEWS:
            makers = [last[m.name] for name in node.inputs if (m := graph.producers.get(name))]
            first[node.name] = last[node.name] = max(makers, default=-1)
    tensors, sizes = [0] * (len(ops) + 1), [0] * (len(ops) + 1)

    def alive_for(start: int, end: int, size: int) -> None:
        """As differences from op to op."""
        if start < end:
            tensors[start] += 1
            tensors[end] -= 1
            sizes[start] += size
            sizes[end] -= size

    early = {name for each in graph.exits[:-1] for name in each.outputs}
    kept = {tensor.name for tensor in graph.outputs} - early
    for node in graph.nodes:
        made = last[node.name] + 1
        if not made:  # nothing has run for it: it is another view of an input
            continue
        alive_for(first[node.name] + 1, made, 0)
        for name in filter(None, node.outputs):
            readers = [last[each.name] for each in graph.consumers.get(name, ())]
            until = len(ops) if name in kept else max(readers, default=-1) + 1
            alive_for(made, until, graph.tensors[name].bytes if name in graph.tensors else 0)
    return [
        Held(*each) for each in zip(accumulate(tensors[:-1]), accumulate(sizes[:-1]), strict=True)
    ]


def critical(states: Sequence[Held]) -> tuple[int, ...]:
    """The ops before which one tensor is alive: all paths through the graph meet there (the
    critical nodes of Pantheon, MobiSys '24, section 3.2.1)."""
    return tuple(op for op, state in enumerate(states) if op and state.tensors == 1)
