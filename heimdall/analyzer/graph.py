"""An ONNX file as Heimdall sees it: a flat, shape-complete graph whose constants are folded.

Loading fixes free dimensions, checks opsets and shapes, and lets onnxruntime's *basic*
optimiser fold constants, batch norms and no-ops. That pass keeps standard ONNX operators
and node names, so op names of every engine still lead back to the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from heimdall.errors import ModelError

OPSETS = range(9, 24)


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
    model: onnx.ModelProto  # the same graph, for engines that run ONNX

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
    def serialized(self) -> bytes:
        return self.model.SerializeToString()


def load_graph(
    path: str | Path, shapes: Mapping[str, Sequence[int]] | Sequence[int] | None = None
) -> Graph:
    """Read, check and simplify an ONNX file.

    ``shapes`` fixes or replaces input shapes: a mapping from input name, or one shape for a
    model with a single image input. Declared fixed shapes may be replaced as well.

    Raises ModelError, naming the file and the node, for anything that cannot be run:
    unreadable or truncated files, opsets outside 9-23, shapes that do not infer, sparse or
    quantised tensors, control flow.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read model {path}: {error.strerror or error}") from error
    model = _parse(path, raw)
    opset = _checked_opset(path, model)
    _fix_input_shapes(path, model, shapes)
    _refuse_unsupported(path, model)
    _expand_constant_fills(model)
    simplified = _simplify(path, model)
    digest = hashlib.sha256(raw)
    for value in simplified.graph.input:
        digest.update(repr((value.name, _dims(value))).encode())
    return _to_graph(path, simplified, opset, digest.hexdigest())


def graph_from_model(model: onnx.ModelProto, name: str = "model") -> Graph:
    """The same checks for a model built in memory (tests, sub-graphs)."""
    raw = model.SerializeToString()
    copy = _parse(Path(name), raw)
    opset = _checked_opset(Path(name), copy)
    _fix_input_shapes(Path(name), copy, None)
    _refuse_unsupported(Path(name), copy)
    _expand_constant_fills(copy)
    simplified = _simplify(Path(name), copy)
    return _to_graph(Path(name), simplified, opset, hashlib.sha256(raw).hexdigest())


def _parse(path: Path, raw: bytes) -> onnx.ModelProto:
    if not raw:
        raise ModelError(f"model {path} is empty")
    try:
        model = onnx.load_model_from_string(raw)
        if not model.graph.node:
            raise ModelError(f"model {path} has no nodes: it is corrupt or not an ONNX model")
        onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
        onnx.checker.check_model(model)
    except ModelError:
        raise
    except Exception as error:
        # protobuf, the checker and external data each raise their own types
        raise ModelError(f"model {path} is not a valid ONNX file: {_first_line(error)}") from error
    return model


def _checked_opset(path: Path, model: onnx.ModelProto) -> int:
    versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    opset = versions.get("ai.onnx", 0)
    if opset not in OPSETS:
        raise ModelError(
            f"model {path} uses ONNX opset {opset}; supported are {OPSETS.start} to "
            f"{OPSETS.stop - 1}. Convert it with onnx.version_converter."
        )
    return opset


def _graph_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    constants = {item.name for item in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def _dims(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _fix_input_shapes(
    path: Path,
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | Sequence[int] | None,
) -> None:
    inputs = _graph_inputs(model)
    names = [value.name for value in inputs]
    if shapes is None:
        shapes = {}
    if not isinstance(shapes, Mapping):
        if len(inputs) != 1:
            raise ModelError(f"model {path} has inputs {names}: give each one's shape by name")
        shapes = {names[0]: shapes}
    for name in shapes:
        if name not in names:
            raise ModelError(f"model {path} has no input {name!r}; its inputs are {names}")
    for value in inputs:
        dims = list(shapes.get(value.name, ()))
        declared = value.type.tensor_type.shape.dim
        if dims:
            if len(dims) != len(declared):
                raise ModelError(
                    f"input {value.name!r} of {path} has {len(declared)} dimensions, "
                    f"shape {dims} has {len(dims)}"
                )
        else:
            dims = [dim.dim_value for dim in declared]
            if len(dims) == 4 and dims[0] <= 0:
                dims[0] = 1  # a free batch dimension is one image
        if any(int(dim) <= 0 for dim in dims):
            free = [dim.dim_param or dim.dim_value for dim in declared]
            raise ModelError(
                f"input {value.name!r} of {path} has free dimensions {free}: choose a shape, "
                f"e.g. shapes={{{value.name!r}: [1, 3, 480, 640]}}"
            )
        for dim, size in zip(declared, dims, strict=True):
            dim.dim_value = int(size)
    if shapes or any(not all(_dims(value)) for value in model.graph.output):
        del model.graph.value_info[:]  # stale: inferred again from the new shapes
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")


_CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}


def _refuse_unsupported(path: Path, model: onnx.ModelProto) -> None:
    if model.graph.sparse_initializer:
        name = model.graph.sparse_initializer[0].values.name
        raise ModelError(f"model {path}: sparse tensor {name!r} is not supported; make it dense")
    for node in model.graph.node:
        where = f"node {node.name or node.output[0]!r} ({node.op_type}) of {path}"
        if node.op_type in _CONTROL_FLOW:
            raise ModelError(f"{where}: control flow is not supported")
        if "Quantize" in node.op_type or node.op_type.startswith("QLinear"):
            raise ModelError(f"{where}: quantised networks are not supported; export in float32")


def _expand_constant_fills(model: onnx.ModelProto) -> None:
    """ConstantOfShape of a known shape becomes a constant: onnxruntime leaves it, and with it
    every weight that is built that way (the light classics of the onnx wheel)."""
    known = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            known[node.output[0]] = node.attribute[0].t
    fills = [
        node
        for node in model.graph.node
        if node.op_type == "ConstantOfShape" and node.input[0] in known
    ]
    for node in fills:
        shape = numpy_helper.to_array(known[node.input[0]])
        value = numpy_helper.to_array(node.attribute[0].t) if node.attribute else np.zeros(1, "f4")
        filled = np.full(shape, value.reshape(-1)[0], value.dtype)
        model.graph.initializer.append(numpy_helper.from_array(filled, node.output[0]))
        model.graph.node.remove(node)


def _simplify(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """Constant folding and batch-norm fusion by onnxruntime's basic optimiser."""
    import tempfile

    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.onnx"
        options.optimized_model_filepath = str(target)
        try:
            ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return shape_inference.infer_shapes(onnx.load(target), data_prop=True)
        except Exception as error:
            # onnxruntime raises a dozen types of its own; its message names the node
            raise ModelError(f"model {path} cannot be loaded: {_first_line(error)}") from error


def _to_graph(path: Path, model: onnx.ModelProto, opset: int, sha256: str) -> Graph:
    constants = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    tensors = {name: Tensor(name, array.shape, array.dtype) for name, array in constants.items()}
    for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        if kind.HasField("shape") and all(size > 0 for size in shape):
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
            tensors[value.name] = Tensor(value.name, tuple(shape), dtype)
    nodes = []
    for index, proto in enumerate(model.graph.node):
        node = Node(
            name=proto.name or f"{proto.op_type}_{index}",
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
        nodes.append(node)
    return Graph(
        name=path.stem,
        nodes=tuple(nodes),
        inputs=tuple(tensors[value.name] for value in _graph_inputs(model)),
        outputs=tuple(tensors[value.name] for value in model.graph.output),
        tensors=tensors,
        constants=constants,
        opset=opset,
        sha256=sha256,
        model=model,
    )


def _attribute(item: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
