"""Where a classifier may get early exits: behind its chunks, cut at critical nodes.

A critical node is one through which all paths go: behind it one tensor is alive. Pieces without
heavy layers are merged into the heavy one before them, and the last two chunks get no exit
(Pantheon, sections 3.2.1 and 3.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from heimdall.errors import ConfigError, ModelError
from heimdall.graph.costs import node_flops
from heimdall.graph.cuts import alive
from heimdall.graph.graph import Graph

_HEAVY = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True)
class Place:
    """A tensor that an exit can begin with, and how many of the nodes make it."""

    tensor: str
    nodes: int


def check_classifier(graph: Graph) -> int:
    """How many classes the network tells apart. Raises ModelError where it is no classifier."""
    outputs = ", ".join(f"{each.name!r} {list(each.shape)}" for each in graph.outputs)
    if graph.exits:
        raise ModelError(f"{graph.name} has early exits already: give the network without them")
    shape = graph.outputs[0].shape
    if len(graph.outputs) != 1 or len(shape) != 2 or shape[0] != 1 or shape[1] < 2:
        raise ModelError(
            f"{graph.name} is no classifier: it makes {outputs}, not one output of shape "
            "(1, classes)"
        )
    return shape[1]


def places(graph: Graph, count: int | None = None) -> list[Place]:
    """All places for exits, or ``count`` of them, spread evenly over what there is to compute.

    Raises ModelError where there is none, ConfigError where there are fewer than that.
    """
    found = _candidates(graph)
    if not found:
        raise ModelError(
            f"{graph.name} has no place for an exit: after none of its chunks but the last two "
            "is one picture all that the rest needs"
        )
    if count is None or count == len(found):
        return found
    if count > len(found):
        where = ", ".join(each.tensor for each in found)
        raise ConfigError(
            f"{graph.name} has places for {len(found)} exits ({where}), not for {count}"
        )
    return _spread(graph, found, count)


def _candidates(graph: Graph) -> list[Place]:
    names = {tensor.name for tensor in graph.inputs}
    last_read = max(i for i, node in enumerate(graph.nodes) if names.intersection(node.inputs))
    cuts = [0]
    for index in range(1, len(graph.nodes)):
        if index > last_read and len(alive(graph, index)) == 1:
            cuts.append(index)
    slices = zip(cuts, [*cuts[1:], len(graph.nodes)], strict=True)
    chunks = [a for a, b in slices if any(n.op_type in _HEAVY for n in graph.nodes[a:b])]
    found = [Place(alive(graph, start)[0], start) for start in chunks[1:-1] if start]
    return [each for each in found if len(graph.tensors[each.tensor].shape) == 4]


def _spread(graph: Graph, found: Sequence[Place], count: int) -> list[Place]:
    done = [0, *accumulate(node_flops(graph, node) for node in graph.nodes)]
    left, chosen = list(found), []
    for number in range(1, count + 1):
        wanted = done[-1] * number / (count + 1)
        best = min(left, key=lambda place: abs(done[place.nodes] - wanted))
        left.remove(best)
        chosen.append(best)
    return sorted(chosen, key=lambda place: place.nodes)
