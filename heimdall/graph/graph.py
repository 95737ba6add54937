"""An ONNX file as Heimdall sees it: a flat, shape-complete graph whose constants are folded.

How a file is checked and simplified is in ``onnx_file``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph import weights
from heimdall.graph.onnx_file import read_model
from heimdall.graph.simplified import Simplified, scan, simplified_model


@dataclass(frozen=True)
class Tensor:
    """Name, fixed shape and element type of one value of the graph."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


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
    """Nodes in topological order, every tensor with a fixed shape, constants as arrays."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, np.ndarray]
    opset: int
    sha256: str  # of the file and the chosen shapes: the identity used by profiles
    bare: onnx.ModelProto  # the same graph, with or without weights (see ``model``)

    @property
    def model(self) -> onnx.ModelProto:
        """The same graph with all weights, for engines that run ONNX; made anew."""
        return weights.attach(self.bare, self.constants)

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

    @property
    def serialized(self) -> bytes:
        """The bytes of ``model``: neither is kept, for both hold all weights once more."""
        return self.model.SerializeToString()


def load_graph(
    path: str | Path, shapes: Mapping[str, Sequence[int]] | Sequence[int] | None = None
) -> Graph:
    """Read, check and simplify an ONNX file.

    ``shapes`` fixes or replaces input shapes: a mapping from input name, or one shape for a
    model with a single input. Declared fixed shapes may be replaced as well.

    Raises ModelError, naming the file and the node, for anything that cannot be run:
    unreadable or truncated files, opsets outside 9-23, unknown ops, shapes that do not infer,
    sparse or quantised tensors, control flow, external data outside the model's folder.
    """
    path = Path(path)
    try:
        scanned = scan(path)
    except OSError as error:
        raise ModelError(f"cannot read model {path}: {error.strerror or error}") from error
    return _load(path, scanned.digest, lambda: simplified_model(path, scanned, shapes))


def graph_from_model(model: onnx.ModelProto, name: str = "model") -> Graph:
    """The same checks for a model built in memory (tests, sub-graphs)."""
    path, raw = Path(name), model.SerializeToString()
    content = hashlib.sha256(raw)
    return _load(path, content, lambda: Simplified(*read_model(path, raw, None), {}))


def _load(path: Path, content: hashlib._Hash, read: Callable[[], Simplified]) -> Graph:
    try:
        found = read()
        digest = content.copy()
        for value in found.model.graph.input:
            dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            digest.update(repr((value.name, dims)).encode())
        return _to_graph(path, found, digest.hexdigest())
    except ModelError:
        raise
    except Exception as error:
        # A damaged file can break any step: names that are no text, types that do not exist.
        raise ModelError(f"model {path} is corrupt: {type(error).__name__}: {error}") from error


def _to_graph(path: Path, found: Simplified, sha256: str) -> Graph:
    model, apart = found.model, found.weights
    constants = {
        item.name: apart[item.name] if item.name in apart else numpy_helper.to_array(item)
        for item in model.graph.initializer
    }
    tensors = {name: Tensor(name, array.shape, array.dtype) for name, array in constants.items()}
    for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        if kind.HasField("shape") and all(size > 0 for size in shape):
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
            if dtype.hasobject:
                raise ModelError(f"tensor {value.name!r} of {path} holds text, not numbers")
            if dtype.isbuiltin != 1:  # float8, int4 and others that numpy itself has not
                raise ModelError(
                    f"tensor {value.name!r} of {path} is {dtype}, which is not supported; export "
                    "in float32"
                )
            tensors[value.name] = Tensor(value.name, tuple(shape), dtype)
    nodes = []
    for proto in model.graph.node:
        node = Node(
            name=proto.name,
            op_type=proto.op_type,
            inputs=tuple(proto.input),
            outputs=tuple(proto.output),
            attributes={item.name: _attribute(item) for item in proto.attribute},
            domain=proto.domain if proto.domain != "ai.onnx" else "",
        )
        for name in node.outputs:
            if name and name not in tensors:
                raise ModelError(
                    f"node {node.name!r} ({node.op_type}) of {path}: the shape of its output "
                    f"{name!r} cannot be inferred, or is empty; fix the input shapes"
                )
        _check_weights(path, node, tensors)
        nodes.append(node)
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
    )


def _check_weights(path: Path, node: Node, tensors: Mapping[str, Tensor]) -> None:
    """A convolution's channels: neither shape inference nor onnxruntime looks before it runs."""
    if node.op_type not in ("Conv", "ConvTranspose") or node.domain:
        return
    channels = tensors[node.inputs[0]].shape[1]
    weights = tensors[node.inputs[1]].shape
    group = node.attributes.get("group", 1)
    outputs, wanted = weights[0], weights[1] * group
    if node.op_type == "ConvTranspose":
        outputs, wanted = weights[1] * group, weights[0]
    bias = tensors[node.inputs[2]].shape if len(node.inputs) > 2 and node.inputs[2] else (outputs,)
    if channels != wanted or channels % group or outputs % group or bias != (outputs,):
        raise ModelError(
            f"node {node.name!r} ({node.op_type}) of {path}: weights {list(weights)} in {group} "
            f"group(s) and bias {list(bias)} do not fit an input of {channels} channels"
        )
    if node.op_type == "Conv":
        _check_window(path, node, tensors[node.inputs[0]].shape[2:], weights[2:])


def _check_window(path: Path, node: Node, size: tuple[int, ...], kernel: tuple[int, ...]) -> None:
    """With a stride above one, shape inference gives a window that is too large one pixel."""
    get = node.attributes.get
    if get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return
    rank = len(size)
    pads, dilations = get("pads", [0] * (2 * rank)), get("dilations", [1] * rank)
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        if reach > size[axis] + pads[axis] + pads[axis + rank]:
            raise ModelError(
                f"node {node.name!r} ({node.op_type}) of {path}: its window of {reach} is larger "
                f"than the padded input, {list(size)}; choose a larger input shape"
            )


def _attribute(item: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value
