"""Where a graph can be taken apart, and the nodes between two such places.

A *cut* is a set of tensors: with these and the graph's inputs, all that is left can be computed.
"""

from __future__ import annotations

from collections.abc import Collection

from heimdall.graph.graph import Graph, Node


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
