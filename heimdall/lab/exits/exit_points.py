"""Where a network may get early exits: behind its chunks, cut at critical nodes.

A critical node is one through which all paths go to the network's end, or, where it has several
branches, to the deepest tensor that can be reached by one way only: of a feature pyramid the way up
to its top. Pieces without heavy layers are merged into the heavy one before them, and the last two
chunks get no exit (Pantheon, sections 3.2.1 and 3.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from heimdall.errors import ConfigError, ModelError, unknown
from heimdall.graph.costs import node_flops
from heimdall.graph.graph import Graph

_HEAVY = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True)
class ExitPoint:
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


def places(graph: Graph, count: int | None = None, after: Sequence[str] = ()) -> list[ExitPoint]:
    """All places for exits, or ``count`` of them, spread evenly over what there is to compute, or
    those ``after`` these tensors.

    Raises ModelError where there is none, ConfigError where there are fewer than that, or where
    one named is none.
    """
    found = _candidates(graph)
    if not found:
        raise ModelError(
            f"{graph.name} has no place for an exit: after none of its chunks but the last two "
            "is one picture all that the rest needs"
        )
    if after:
        return _named(graph, found, after)
    if count is None or count == len(found):
        return found
    if count > len(found):
        where = ", ".join(each.tensor for each in found)
        raise ConfigError(
            f"{graph.name} has places for {len(found)} exits ({where}), not for {count}"
        )
    return _spread(graph, found, count)


def _named(graph: Graph, found: Sequence[ExitPoint], after: Sequence[str]) -> list[ExitPoint]:
    by_name = {each.tensor: each for each in found}
    for name in after:
        if name not in by_name:
            raise ConfigError(unknown(f"place for an exit of {graph.name}", name, list(by_name)))
    return sorted((by_name[name] for name in set(after)), key=lambda place: place.nodes)


def _candidates(graph: Graph) -> list[ExitPoint]:
    path = _path(graph)
    cuts = [0, *(index for index, _ in path)]
    slices = zip(cuts, [*cuts[1:], len(graph.nodes)], strict=True)
    chunks = [a for a, b in slices if any(n.op_type in _HEAVY for n in graph.nodes[a:b])]
    made = dict(path)
    found = [ExitPoint(made[start], start) for start in chunks[1:-1] if start]
    return [each for each in found if len(graph.tensors[each.tensor].shape) == 4]


def _path(graph: Graph) -> list[tuple[int, str]]:
    """The tensors through which all paths go to the tensor that has most of them before it, each
    with the number of nodes up to it."""
    through: dict[str, frozenset[str]] = {tensor.name: frozenset() for tensor in graph.inputs}
    for node in graph.nodes:
        before = [through[name] for name in node.inputs if name in through]
        shared = frozenset.intersection(*before) if before else frozenset()
        through |= {name: shared | {name} for name in node.outputs if name and before}
    longest = max(through.values(), key=len)
    made = {name: index for index, node in enumerate(graph.nodes, 1) for name in node.outputs}
    return sorted((made[name], name) for name in longest)


def _spread(graph: Graph, found: Sequence[ExitPoint], count: int) -> list[ExitPoint]:
    done = [0, *accumulate(node_flops(graph, node) for node in graph.nodes)]
    left, chosen = list(found), []
    for number in range(1, count + 1):
        wanted = done[-1] * number / (count + 1)
        best = min(left, key=lambda place: abs(done[place.nodes] - wanted))
        left.remove(best)
        chosen.append(best)
    return sorted(chosen, key=lambda place: place.nodes)
