"""Ops that hold graphs: If, Loop, Scan.

Where a condition is known when a model is read, its branch takes the place of the If. All other
control flow makes the model one node (see ``whole``).
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import compose, helper

from heimdall.graph.values import node_name

OPS = {"If", "Loop", "Scan", "SequenceMap"}


def nodes_of(graph: onnx.GraphProto) -> Iterator[tuple[int, onnx.NodeProto]]:
    """All nodes with their numbers in their graphs, those of graphs inside nodes, too."""
    for index, node in enumerate(graph.node):
        yield index, node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from nodes_of(inner)


def branch(node: onnx.NodeProto, condition: bool) -> onnx.GraphProto:
    """The graph that an If takes under a condition, as nodes to put in its place: names of its own
    do not collide with others', and it ends with those that write the If's outputs."""
    wanted = "then_branch" if condition else "else_branch"
    graph = next(item.g for item in node.attribute if item.name == wanted)
    own = {name for inner in graph.node for name in inner.output}
    own |= {item.name for item in graph.initializer}
    prefix = f"{node.output[0]}/"
    # its outputs may be values of the graph around it, which keep their names
    sources = [prefix + value.name if value.name in own else value.name for value in graph.output]
    placed = onnx.GraphProto()
    placed.CopyFrom(graph)
    del placed.output[:]
    placed = compose.add_prefix_graph(placed, prefix)
    for source, name in zip(sources, node.output, strict=True):
        placed.node.append(helper.make_node("Identity", [source], [name], f"{node.name}/{name}"))
    return placed


def where(path: object, index: int, node: onnx.NodeProto) -> str:
    """A node of a file, as messages name it."""
    return f"node {node_name(index, node)!r} ({node.op_type}) of {path}"
