"""The checks that every engine makes before it computes, with the same words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from heimdall.engine.exits import computed, may_skip
from heimdall.engine.network import LoadedNetwork, Op, State
from heimdall.errors import ModelError
from heimdall.graph.graph import Graph, Node, Tensor


def check_inputs(graph: Graph, given: Mapping[str, np.ndarray]) -> None:
    """Raise ModelError unless ``given`` has exactly the graph's inputs: names, shapes, types."""
    names = [tensor.name for tensor in graph.inputs]
    if set(given) != set(names):
        raise ModelError(f"{graph.name} has inputs {names}; given were {list(given)}")
    for tensor in graph.inputs:
        array = given[tensor.name]
        if not hasattr(array, "dtype"):
            array = np.asarray(array)
        if array.shape != tensor.shape or array.dtype != tensor.dtype:
            raise ModelError(
                f"input {tensor.name!r} of {graph.name} must be {tensor.dtype} of shape "
                f"{tensor.shape}; given was {array.dtype} of shape {array.shape}"
                + _what_to_do(array, tensor)
            )


def is_finite(array: np.ndarray) -> bool:
    """Whether all its values are numbers. A sum is none if any of its terms is none, and takes
    0.1 ms a megabyte."""
    if array.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum(dtype=np.float32)
    return bool(np.isfinite(total) or np.isfinite(array).all())  # large numbers add up to infinity


def check_finite(graph: Graph, given: Mapping[str, np.ndarray]) -> None:
    """Raise ModelError where an input holds what is no number: all that follows would be none."""
    for name, array in given.items():
        kept = not isinstance(array, np.ndarray)  # what a network has kept of its own
        if not kept and not is_finite(array):
            raise ModelError(f"input {name!r} of {graph.name} has values that are no numbers (NaN)")


def _what_to_do(array: np.ndarray, tensor: Tensor) -> str:
    """What makes ``array`` fit, where that is plain."""
    given, wanted = array.shape, tensor.shape
    if given == wanted:
        return f": convert it with .astype(np.{tensor.dtype})"
    if (1, *given) == wanted:
        return ": the batch axis is missing, add it with array[None]"
    if len(wanted) == len(given) == 4:
        if (given[0], given[3], *given[1:3]) == wanted:
            return ": the channels come first, use array.transpose(0, 3, 1, 2)"
        if (given[0], *given[2:], given[1]) == wanted:
            return ": the channels come last, use array.transpose(0, 2, 3, 1)"
        if sorted(given[:2]) == sorted(wanted[:2]) or given[3] == wanted[3]:
            return ": resize the picture, or give the model this shape"
    return ""


def check_range(
    network: LoadedNetwork, state: State, start: int, end: int, *, fallback: bool = False
) -> None:
    """Raise ValueError unless ``[start, end)`` continues a job, or goes on beyond heads of early
    exits, and holds only ops of the wanted kind."""
    ops, position = network.ops, state.position
    if not 0 <= start <= end <= len(ops):
        raise ValueError(f"range [{start}, {end}) is outside the {len(ops)} ops")
    skips = 0 <= position < start and may_skip(network.exits, position, start)
    if start != position and not skips:
        raise ValueError(f"op {position} is next; the range [{start}, {end}) is out of order")
    for op in ops[start:end]:
        if op.fallback != fallback:
            kind, call = ("a fallback", "run_fallback") if op.fallback else ("a GPU", "run")
            raise ValueError(f"op {op.name!r} is {kind} op: use {call}")


def check_read(network: LoadedNetwork, state: State, leave: Collection[str] = ()) -> list[str]:
    """The outputs that a job has computed, by name, but for those to ``leave``. Raises ValueError
    where it has not reached the end, nor that of an exit."""
    graph, count, position = network.graph, len(network.ops), state.position
    if network.exits:
        found = computed(graph.exits, network.exits, state.progress)
    else:
        found = [tensor.name for tensor in graph.outputs] if position == count else []
    if not found:
        raise ValueError(
            f"{graph.name} has run {max(position, 0)} of {count} ops: run the rest before reading"
        )
    return [name for name in found if name not in leave]


def is_forced(node: Node, forced: Collection[str]) -> bool:
    """Does ``force_fallback`` name this node, or its op type?"""
    return node.op_type in forced or node.name in forced


def node_ops(graph: Graph, forced: Collection[str]) -> tuple[Op, ...]:
    """One op a node."""
    return tuple(
        Op.of(graph, [node], node.name, node.op_type, is_forced(node, forced))
        for node in graph.nodes
    )


def check_forced(graph: Graph, forced: Collection[str]) -> None:
    """Raise ModelError when ``force_fallback`` is a lone string, which would match letters."""
    _check_list(graph.name, forced)


def _check_list(networks: str, forced: Collection[str]) -> None:
    if isinstance(forced, str):
        raise ModelError(
            f"force_fallback for {networks} must be a list of names, such as [{forced!r}], not "
            f"{forced!r}"
        )


def check_forced_names(graphs: Sequence[Graph], forced: Collection[str]) -> None:
    """Raise ModelError unless every name in ``force_fallback`` is an op type or a node of one of
    a DNN's networks, in a list: a misspelt one would silently change nothing."""
    _check_list(", ".join(graph.name for graph in graphs), forced)
    nodes = [node for graph in graphs for node in graph.nodes]
    known = {node.op_type for node in nodes} | {node.name for node in nodes}
    missing = sorted(set(forced) - known)
    if missing:
        networks = ", ".join(graph.name for graph in graphs)
        types = ", ".join(sorted({node.op_type for node in nodes}))
        raise ModelError(
            f"force_fallback names {missing[0]!r}, which is neither an op type nor a node of "
            f"{networks} (after simplification); op types there: {types}"
        )
