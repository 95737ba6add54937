"""An ONNX file as Heimdall sees it: a flat, shape-complete graph whose constants are folded.

How a file is checked and simplified is in ``onnx_file``.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph import limits, weights
from heimdall.graph.exits import DeclaredExit, order_nodes
from heimdall.graph.onnx_file import NOTE, Inputs, read_model
from heimdall.graph.simplified import Simplified, scan, simplified_model
from heimdall.graph.values import attributes_of, is_plain, type_name

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tensor:
    """Name, shape and element type of one value of the graph.

    A size of -1 is known only when the network has run: of an output that depends on the data.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def some_shape(self) -> tuple[int, ...]:
        """``shape`` with 1 for each size that is not known."""
        return tuple(1 if size < 0 else size for size in self.shape)

    @property
    def bytes(self) -> int:
        return limits.count(self.some_shape) * self.dtype.itemsize

    def fits(self, shape: tuple[int, ...]) -> bool:
        """May the tensor have this shape?"""
        return len(shape) == len(self.shape) and all(
            size in (-1, found) for size, found in zip(self.shape, shape, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Zeros:
    """A tensor of zeros, which take no memory until somebody asks for them as an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.zeros(self.shape, self.dtype if dtype is None else dtype)


@dataclass(frozen=True)
class Node:
    """One ONNX operator. ``inputs`` may hold empty names (optional inputs left out)."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(hash=False)
    domain: str = ""


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in topological order, every tensor with a shape, constants as arrays."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, np.ndarray]
    opset: int
    sha256: str  # of the file and the chosen shapes: the identity used by profiles
    bare: onnx.ModelProto  # the same graph, with or without weights (see ``model``)
    exits: tuple[DeclaredExit, ...] = ()  # those before the last are early; see ``exits``

    @property
    def model(self) -> onnx.ModelProto:
        """This graph with all weights, for engines that run ONNX; made anew."""
        return weights.attach(self.bare, self.constants)

    @property
    def results(self) -> tuple[Tensor, ...]:
        """The outputs of the whole network, without those of early exits."""
        if not self.exits:
            return self.outputs
        return tuple(self.tensors[name] for name in self.exits[-1].outputs)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the file says of itself: names of classes, an alphabet, who made it."""
        return {entry.key: entry.value for entry in self.bare.metadata_props if entry.key != NOTE}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """Tensor name -> the nodes that read it."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """Tensor name -> the node that writes it."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def needed(self) -> frozenset[str]:
        """Names of the nodes that an output depends on."""
        tensors, names = {tensor.name for tensor in self.outputs}, set()
        for node in reversed(self.nodes):
            if not tensors.isdisjoint(node.outputs):
                names.add(node.name)
                tensors.update(filter(None, node.inputs))
        return frozenset(names)

    @property
    def serialized(self) -> bytes:
        """The bytes of ``model``: neither is kept, for both hold all weights once more."""
        return self.model.SerializeToString()


def load_graph(path: str | Path, shapes: Inputs | Sequence[int] | None = None) -> Graph:
    """Read, check and simplify an ONNX file.

    ``shapes`` fixes or replaces input shapes: a mapping from input name, or one shape for a
    model with a single input. Declared fixed shapes may be replaced as well. A number instead of a
    shape is what the input always is: a sampling rate, say. Where nothing is said, a free batch is
    one, and free sides of a picture are 480 x 640.

    Branches whose condition is known then are part of the graph. Other control flow, types that
    numpy lacks and shapes that depend on the data make the whole model one node, which onnxruntime
    runs on the CPU.

    Raises ModelError, naming the file and the node, for anything that cannot be run:
    unreadable or truncated files, opsets older than 7 or newer than onnx, unknown ops, shapes that
    do not fit, tensors larger than ``limits`` allows, inputs that are no tensors of numbers,
    external data outside the model's folder. Nothing is allocated for what is too large.

    Shapes follow from those of the inputs: what the file says of others may be stale. Models in
    half precision become float32 (``half``), quantised ones become float networks that round
    where those do (``quantised``).
    """
    path = Path(path)
    try:
        scanned = scan(path)
    except OSError as error:
        raise ModelError(f"cannot read model {path}: {error.strerror or error}") from error
    given = shapes if isinstance(shapes, Mapping) else {}
    numbers = {name: each for name, each in given.items() if isinstance(each, int | float)}
    return _load(path, scanned.digest, lambda: simplified_model(path, scanned, shapes), numbers)


def graph_from_model(model: onnx.ModelProto, name: str = "model") -> Graph:
    """Load a model built in memory (tests, sub-graphs), with the same checks."""
    path, raw = Path(name), model.SerializeToString()
    content = hashlib.sha256(raw)
    return _load(path, content, lambda: Simplified(*read_model(path, raw, None), {}))


def _load(
    path: Path,
    content: hashlib._Hash,
    read: Callable[[], Simplified],
    numbers: Mapping[str, float] = MappingProxyType({}),
) -> Graph:
    try:
        found = read()
    except UnicodeError as error:
        raise ModelError(f"model {path} is corrupt: a name in it is no text ({error})") from error
    digest = content.copy()
    for value in found.model.graph.input:
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        digest.update(repr((value.name, dims)).encode())
    for name, number in numbers.items():
        digest.update(repr((name, number)).encode())
    graph = _to_graph(path, found, digest.hexdigest())
    for entry in found.model.metadata_props:
        if entry.key == NOTE:
            log.info("%s", entry.value)
    return graph


def _to_graph(path: Path, found: Simplified, sha256: str) -> Graph:
    model, apart = found.model, found.weights
    exits = order_nodes(path, model)
    constants = {
        item.name: apart[item.name] if item.name in apart else numpy_helper.to_array(item)
        for item in model.graph.initializer
    }
    tensors = {name: Tensor(name, array.shape, array.dtype) for name, array in constants.items()}
    for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        if not is_plain(value.type):
            raise ModelError(
                f"tensor {value.name!r} of {path} is {type_name(value.type)}: export in float32"
            )
        shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
        tensors[value.name] = Tensor(value.name, tuple(shape), dtype)
    nodes = []
    for proto in model.graph.node:
        node = Node(
            name=proto.name,
            op_type=proto.op_type,
            inputs=tuple(proto.input),
            outputs=tuple(proto.output),
            attributes=attributes_of(proto),
            domain=proto.domain if proto.domain != "ai.onnx" else "",
        )
        nodes.append(node)
    _check_peak(path, nodes, tensors, [value.name for value in model.graph.output])
    return Graph(
        name=path.stem,
        nodes=tuple(nodes),
        inputs=tuple(tensors[value.name] for value in model.graph.input),
        outputs=tuple(tensors[value.name] for value in model.graph.output),
        tensors=tensors,
        constants=constants,
        opset=found.opset,
        sha256=sha256,
        bare=model,
        exits=exits,
    )


def _check_peak(
    path: Path, nodes: Sequence[Node], tensors: Mapping[str, Tensor], outputs: Sequence[str]
) -> None:
    """Raise ModelError, naming the node, if what is alive at once exceeds the machine's memory."""
    last = {name: index for index, node in enumerate(nodes) for name in node.inputs}
    last |= dict.fromkeys(outputs, len(nodes))
    ends: dict[int, list[str]] = {}
    for name, index in last.items():
        ends.setdefault(index, []).append(name)
    alive = {name: tensor.bytes for name, tensor in tensors.items() if name in last}
    held = sum(alive.values())
    held -= sum(alive.get(name, 0) for node in nodes for name in node.outputs)
    for index, node in enumerate(nodes):
        held += sum(tensors[name].bytes for name in node.outputs if name)
        if held > limits.machine_bytes():
            raise ModelError(
                f"node {node.name!r} ({node.op_type}) of {path} needs "
                f"{limits.say_bytes(held)} with all that is alive beside it, and this machine has "
                f"{limits.say_bytes(limits.machine_bytes())}; choose smaller input shapes"
            )
        unread = [name for name in node.outputs if name and name not in last]
        held -= sum(
            tensors[name].bytes for name in [*unread, *ends.get(index, ())] if name in tensors
        )
