"""Samples lead to indices that tables have, and integers are not divided by zero.

What lies between an input and an index (an offset, a Clip, a Cast) is run by onnxruntime, on
samples and on two constants: so the numbers that an index allows are found without knowing the ops.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper

from heimdall.graph import weights
from heimdall.graph.costs import node_flops
from heimdall.graph.cuts import between
from heimdall.graph.graph import Graph, Node
from heimdall.graph.sessions import first_line, open_session
from heimdall.graph.whole import WHOLE

log = logging.getLogger(__name__)

MOST_FLOPS = 1e7  # of what makes an index; more is a network, which knows what it may choose
FILLS = (1, 0, 2, 16, 256)  # tried for the inputs of a model that runs whole
_INDEXING = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"}

Arrays = Mapping[str, np.ndarray]


class Index(NamedTuple):
    """A tensor whose numbers must be from ``low`` to ``high``, each a row of them for GatherND;
    or, without these, not 0."""

    node: Node
    tensor: str
    low: np.ndarray | None
    high: np.ndarray | None

    def allows(self, found: np.ndarray) -> bool:
        if self.low is None or self.high is None:
            return bool((found != 0).all())
        return bool(((found >= self.low) & (found <= self.high)).all())


def within(graph: Graph, inputs: Arrays, random: np.random.Generator) -> dict[str, np.ndarray]:
    """``inputs``, with other numbers where these lead to an index outside its table. Where no
    numbers are found that do not, a word in the log says how to give them."""
    if any(node.op_type == WHOLE for node in graph.nodes):
        return _that_run(graph, inputs)
    found = dict(inputs)
    for index in _indices(graph):
        nodes, read = between(graph, (), [index.tensor])
        named = read if nodes else [index.tensor]
        if sum(node_flops(graph, node) for node in nodes) > MOST_FLOPS:
            continue
        try:
            _hold(graph, index, nodes, named, found, random)
        except Exception as error:  # onnxruntime raises a dozen types of its own
            log.debug("samples for %s: %s", index.node.name, first_line(error))
    return found


def _indices(graph: Graph) -> Iterator[Index]:
    """What must be within something, and is not constant."""
    for node in graph.nodes:
        chooses = node.op_type in _INDEXING or node.op_type in ("Div", "Mod")
        if not chooses or node.domain or node.inputs[1] in graph.constants:
            continue
        data, index = (graph.tensors[name] for name in node.inputs[:2])
        if node.op_type in _INDEXING:
            axis = node.attributes.get("axis", 0)
            first = node.attributes.get("batch_dims", 0)
            several = node.op_type in ("GatherND", "ScatterND")
            sizes: np.ndarray = np.asarray(
                data.shape[first : first + index.shape[-1]] if several else data.shape[axis]
            )
            yield Index(node, index.name, -sizes, sizes - 1)
        elif index.dtype.kind in "iu":
            yield Index(node, index.name, None, None)


def _hold(
    graph: Graph,
    index: Index,
    nodes: Sequence[Node],
    read: Sequence[str],
    found: dict[str, np.ndarray],
    random: np.random.Generator,
) -> None:
    """Replace inputs in ``found`` until the index is allowed."""
    inputs = [each for each in graph.inputs if each.name in read]
    session = open_session(_part(graph, nodes, read, index.tensor)) if nodes else None

    def makes(given: Arrays) -> np.ndarray:
        if session is None:
            return given[index.tensor]
        feeds = {each.name: given[each.name] for each in inputs}
        return np.asarray(session.run([index.tensor], feeds)[0])

    for values in _candidates(makes, index, found):
        tried = dict(found)
        if values is not None:
            low, high = values
            for each in inputs:
                whole = each.dtype.kind in "iu"
                numbers = random.uniform(low, high + 1 if whole else high, each.shape)
                tried[each.name] = np.asarray(np.floor(numbers) if whole else numbers, each.dtype)
        if index.allows(makes(tried)):
            found.update(tried)
            return
    names = [each.name for each in inputs]
    log.warning(
        "no samples of %s are within what node %r (%s) of %s takes; if this is an input that is "
        "always the same, give it: shapes={%r: 1}",
        " and ".join(map(repr, names)),
        index.node.name,
        index.node.op_type,
        graph.name,
        names[0],
    )


def _candidates(
    makes: Callable[[Arrays], np.ndarray], index: Index, found: Arrays
) -> Iterator[tuple[int, int] | None]:
    """Ranges of numbers to try for the inputs; None: those that are there."""
    yield None
    if index.low is not None and index.high is not None:
        zeros, ones = ({name: np.full_like(a, c) for name, a in found.items()} for c in (0, 1))
        first, second = (makes(given).astype(np.float64) for given in (zeros, ones))
        slope = second - first
        if slope.size and (slope != 0).all():  # as of an offset or a factor
            ends = np.stack([-first / slope, (index.high - first) / slope])
            low = int(np.ceil(ends.min(axis=0).max()))
            high = int(np.floor(ends.max(axis=0).min()))
            if low <= high:
                yield low, high
        yield 0, int(index.high.min())  # as of a Clip
    yield from ((1, 1), (0, 0))


def _part(graph: Graph, nodes: Sequence[Node], read: Sequence[str], output: str) -> onnx.ModelProto:
    """The nodes that make an index, as a model."""
    names = {node.name for node in nodes}
    protos = [proto for proto in graph.bare.graph.node if proto.name in names]
    used = {name for proto in protos for name in proto.input}
    part = helper.make_graph(
        protos,
        "index",
        [
            helper.make_tensor_value_info(
                each.name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape
            )
            for each in graph.inputs
            if each.name in read
        ],
        [onnx.ValueInfoProto(name=output)],
        weights.stored(graph.bare, graph.constants, used),
    )
    imports, version = graph.bare.opset_import, graph.bare.ir_version
    return helper.make_model(part, opset_imports=imports, ir_version=version)


def _that_run(graph: Graph, inputs: Arrays) -> dict[str, np.ndarray]:
    """Inputs on which onnxruntime runs a whole model, where integers or single numbers may decide
    whether it does."""
    deciding = [each for each in graph.inputs if each.dtype.kind in "iu" or len(each.shape) <= 1]
    if not deciding:
        return dict(inputs)
    session = open_session(graph.model)
    tried = [dict(inputs)]
    tried += [{**inputs, **{n.name: np.full(n.shape, c, n.dtype) for n in deciding}} for c in FILLS]
    tried += [{name: np.full_like(each, c) for name, each in inputs.items()} for c in (0, 1)]
    for given in tried:
        try:
            session.run(None, given)
            return given
        except Exception as error:  # onnxruntime raises a dozen types of its own
            said = first_line(error)
    log.warning(
        "no samples of %s make %s run (%s); if this is an input that is always the same, give it: "
        "shapes={%r: 1}",
        " and ".join(repr(each.name) for each in deciding),
        graph.name,
        said,
        deciding[0].name,
    )
    return dict(inputs)
