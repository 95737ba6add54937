"""Early exits of a network: what a file declares of them, and which ops belong to which.

Such a file has as many outputs an exit as the network has, and its metadata name them, in the same
order for each, the whole network last. What only an exit needs is its *head*; what the whole
network needs is the *backbone*. Ops are kept in the order backbone up to exit 1, head 1, backbone
up to exit 2, head 2, ..., the rest of the backbone, so that a variant is a few ranges of ops
(Pantheon, section 3.2.2).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx

from heimdall.errors import ModelError
from heimdall.vocabulary.ranges import as_ranges

METADATA = "heimdall_exits"
_SHAPE = (
    'a JSON list of {"name": ..., "output": a name or a list of names, "accuracy": 0..1}, the '
    "whole network last"
)

Edges = tuple[Collection[str], Collection[str]]  # of an op: the tensors it reads, those it makes


@dataclass(frozen=True)
class DeclaredExit:
    """One variant of a network: its outputs, in the order of the whole network's, and the share of
    pictures it got right."""

    name: str
    outputs: tuple[str, ...]
    accuracy: float

    def described(self) -> dict[str, object]:
        """As in the metadata."""
        output = self.outputs[0] if len(self.outputs) == 1 else list(self.outputs)
        return {"name": self.name, "output": output, "accuracy": self.accuracy}


@dataclass(frozen=True)
class Arranged:
    """Ops in an order in which variants are ranges. ``order`` holds indices of the ops as given;
    ``heads[i]`` is the exit whose head has the op at place i (None: the backbone has it)."""

    order: tuple[int, ...]
    heads: tuple[int | None, ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]  # a variant, in places of ``order``

    @property
    def head_of(self) -> dict[int, int]:
        """By index of the op as given: the exit whose head has it, if any."""
        pairs = zip(self.order, self.heads, strict=True)
        return {op: head for op, head in pairs if head is not None}


def declared(name: str, metadata: str, outputs: Collection[str]) -> tuple[DeclaredExit, ...]:
    """The exits that a model's metadata declare. Raises ModelError, naming model and entry."""
    where = f"model {name}: its metadata {METADATA!r}"
    try:
        found = tuple(_exit(entry) for entry in json.loads(metadata))
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{where} must be {_SHAPE} ({type(error).__name__}: {error})") from error
    if len(found) < 2:
        raise ModelError(f"{where} names {len(found)} exits: one is none, leave the metadata out")
    named = [output for exit in found for output in exit.outputs]
    for what, each in (("name", [exit.name for exit in found]), ("output", named)):
        if len(set(each)) < len(each):
            raise ModelError(f"{where} gives two exits the same {what}: {each}")
    counts = {len(exit.outputs) for exit in found}
    if len(counts) > 1:
        raise ModelError(f"{where} gives exits different numbers of outputs: {sorted(counts)}")
    strangers = set(named) ^ set(outputs)
    if strangers:
        raise ModelError(
            f"{where} and the outputs {sorted(outputs)} differ by {sorted(strangers)}: each "
            "output belongs to one exit"
        )
    return found


def _exit(entry: dict[str, object]) -> DeclaredExit:
    name, outputs, accuracy = entry["name"], entry["output"], entry["accuracy"]
    outputs = [outputs] if isinstance(outputs, str) else outputs
    strings = isinstance(outputs, list) and all(isinstance(each, str) for each in outputs)
    if not isinstance(name, str) or not name or not isinstance(outputs, list) or not strings:
        raise TypeError(f"{entry} has no name or output")
    if not outputs:
        raise ValueError(f"{name!r} has no output")
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float):
        raise TypeError(f"the accuracy of {name!r} is {accuracy!r}")
    if not 0 <= accuracy <= 1:
        raise ValueError(f"the accuracy of {name!r} is {accuracy}, not 0..1")
    return DeclaredExit(name, tuple(outputs), float(accuracy))


class Outputs(dict[str, np.ndarray]):
    """The outputs of a network by name; ``exit``: the variant that made them."""

    exit = ""


def as_whole(exits: Sequence[DeclaredExit], outputs: Mapping[str, np.ndarray]) -> Outputs:
    """Of what a job has computed, the last exit's outputs, under the names of the whole network's:
    their readers need not know of exits."""
    if not exits:
        return Outputs(outputs)
    last = next(each for each in reversed(exits) if outputs.keys() >= set(each.outputs))
    pairs = zip(exits[-1].outputs, last.outputs, strict=True)
    found = Outputs({name: outputs[own] for name, own in pairs})
    found.exit = last.name
    return found


def arrange(ops: Sequence[Edges], exits: Sequence[DeclaredExit]) -> Arranged:
    """Order ops, given so that each comes after all that it reads, by the exits that end with
    their outputs. Ops that no exit needs come last.

    Raises ValueError where exits contradict each other: one without ops of its own, two that share
    a head, or one that leaves the backbone after the next.
    """
    makers = {name: op for op, (_, made) in enumerate(ops) for name in made}
    needs = [_ancestors(ops, makers, each.outputs) for each in exits]
    outputs = [each.outputs[0] for each in exits]
    backbone = needs[-1]
    heads = [need - backbone for need in needs[:-1]]
    before = [need & backbone for need in needs]
    for number, (here, there) in enumerate(pairwise(before)):
        if not here <= there:
            raise ValueError(f"{outputs[number]!r} needs more of the network than the next exit")
    for number, head in enumerate(heads):
        if not head:
            raise ValueError(f"{outputs[number]!r} is made on the way to {outputs[-1]!r}")
        shared = [outputs[n] for n, other in enumerate(heads[:number]) if head & other]
        if shared:
            raise ValueError(f"{outputs[number]!r} needs what only {shared[0]!r} makes")
    order: dict[int, int | None] = {}
    for number, part in enumerate(before):
        order |= dict.fromkeys(sorted(part - order.keys()))
        if number < len(heads):
            order |= dict.fromkeys(sorted(heads[number]), number)
    order |= dict.fromkeys(op for op in range(len(ops)) if op not in order)
    places = {op: place for place, op in enumerate(order)}
    ranges = tuple(as_ranges(sorted(places[op] for op in need)) for need in needs)
    return Arranged(tuple(order), tuple(order.values()), ranges)


def _ancestors(ops: Sequence[Edges], makers: dict[str, int], outputs: Sequence[str]) -> set[int]:
    found, pending = set(), list(outputs)
    while pending:
        op = makers.get(pending.pop())
        if op is not None and op not in found:
            found.add(op)
            pending += ops[op][0]
    return found


def order_nodes(path: Path, model: onnx.ModelProto) -> tuple[DeclaredExit, ...]:
    """The exits that a model declares, and its nodes put into their order; nothing without exits.

    Raises ModelError where they contradict the graph, or each other.
    """
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    if METADATA not in metadata:
        return ()
    outputs = [value.name for value in model.graph.output]
    exits = declared(path.name, metadata[METADATA], outputs)
    nodes = list(model.graph.node)
    try:
        arranged = arrange([(n.input, n.output) for n in nodes], exits)
    except ValueError as error:
        raise ModelError(f"model {path.name}: its exits contradict each other: {error}") from error
    del model.graph.node[:]
    model.graph.node.extend(nodes[op] for op in arranged.order)
    return exits
